"""The default driver: bubblewrap, namespaces of its own for everything, and the seccomp filter."""
