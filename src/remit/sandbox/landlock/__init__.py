"""The driver `landlock`: for machines, such as containers, where no namespace can be made. Chosen knowingly.

It is weaker than the default.

The kernel's Landlock keeps a program to some folders, the seccomp filter from every socket. It shares processes, users
and `/proc` with the machine: it may see that other programs of its user run, and cannot signal them from Linux 6.12 on.
"""
