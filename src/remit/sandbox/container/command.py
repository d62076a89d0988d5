"""The command line of docker and podman; both take these words."""

from __future__ import annotations

from typing import Final

from remit.sandbox.identity import Identity
from remit.sandbox.limiting import OWN
from remit.sandbox.spec import WORKSPACE, Spec

_CLOSED: Final = [
    "--interactive",
    "--network",
    "none",
    "--read-only",
    "--cap-drop",
    "ALL",
    "--security-opt",
    "no-new-privileges",
    "--ipc",
    "private",
    "--pull",
    "never",
    "--log-driver",
    "none",
    "--stop-timeout",
    "0",
    "--hostname",
    "sandbox",
]
_PROCESSES: Final = 16_384
"""Of the container's user on the whole machine; its cgroup holds its own. What podman asks for by itself is refused
where this machine's root may not raise limits."""


class Container:
    """What the settings say of containers."""

    def __init__(self, mark: str, program: str, image: str, runtime: str = "") -> None:
        """Use this program, image and runtime; every container bears the mark."""
        self.mark = mark
        self.program = program
        self.image = image
        self.runtime = runtime

    def run(self, spec: Spec, identity: Identity) -> list[str]:
        """The words that run a program."""
        words = [self.program, "run", "--name", self._name(spec.id), *_CLOSED]
        if self.runtime:
            words += ["--runtime", self.runtime]
        if identity.uid is not None:
            words += ["--user", f"{identity.uid}:{identity.gid}"]
        elif self.program.endswith("podman"):
            words += ["--userns", "keep-id"]
        words += [*_limits(spec), "--volume", f"{spec.workspace}:{WORKSPACE}:rw", "--workdir", spec.cwd]
        for mount in spec.mounts:
            words += ["--volume", f"{mount.source}:{mount.target}:{'rw' if mount.writable else 'ro'}"]
        for name, value in {"HOME": WORKSPACE, "LANG": "C.UTF-8", **spec.env}.items():
            words += ["--env", f"{name}={value}"]
        return [*words, "--entrypoint", spec.argv[0], self.image, *spec.argv[1:]]

    def remove(self, run: str) -> list[str]:
        """The words that end a container and delete it."""
        return [self.program, "rm", "--force", self._name(run)]

    def ran_out_of_memory(self, run: str) -> list[str]:
        """The words that print `true` if the kernel ended a program that wanted more memory than it may have."""
        return [self.program, "inspect", "--format", "{{.State.OOMKilled}}", self._name(run)]

    def _name(self, run: str) -> str:
        return f"{self.mark}-{run}"


def _limits(spec: Spec) -> list[str]:
    limits = spec.limits
    memory = str(limits.memory_bytes)
    words = ["--memory", memory, "--memory-swap", memory, "--pids-limit", str(limits.pids + OWN)]
    words += ["--cpus", f"{limits.cpu_percent / 100:.2f}"]
    held = {"nofile": limits.descriptors, "fsize": limits.file_bytes, "core": 0, "cpu": -(-limits.cpu_ms // 1000)}
    held["nproc"] = _PROCESSES
    for name, value in held.items():
        words += ["--ulimit", f"{name}={value}:{value}"]
    return [*words, "--tmpfs", f"/tmp:rw,nosuid,nodev,size={limits.tmp_bytes},mode=1777"]  # noqa: S108 - the container's own
