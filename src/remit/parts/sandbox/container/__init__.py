"""The driver `container`: docker or podman, with the runtime of the operator's choice, such as gVisor's runsc."""
