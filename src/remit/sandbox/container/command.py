"""The command line of docker and podman; both take these words."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Final

from remit.process.enclosure import SandboxUnavailableError
from remit.sandbox.identity import Identity
from remit.sandbox.limiting import OWN
from remit.sandbox.spec import WORKSPACE, Mount, Spec

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
    "--cgroupns",
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
_PODMAN: Final = ["--read-only-tmpfs=false", "--security-opt", "mask=/proc/cmdline:/proc/keys:/proc/key-users"]
"""It would make `/run` and `/var/tmp` writable, without a limit, and show what of `/proc` is the machine's."""
_LINE_BYTES: Final = 60_000
"""Longer lines of a file of variables are not read."""
_PROCESSES: Final = 16_384
"""Of the container's user on the whole machine; its cgroup holds its own. What podman asks for by itself is refused
where this machine's root may not raise limits."""


class RunFiles:
    """The files that docker and podman read: the profile, and variables, which no list of processes may show."""

    def __init__(self, folder: Path, profile: bytes) -> None:
        self.profile = folder / "seccomp.json" if profile else None
        self.variables = folder / "variables"
        self.resolver = folder / "resolv.conf"
        """Empty: docker shows a container without a network the machine's."""
        self._folder = folder
        self._profile = profile

    def write(self, env: Mapping[str, str]) -> None:
        """Write them. Raises SandboxUnavailableError for a variable that such a file cannot hold, and OSError."""
        lines = [_line(name, value) for name, value in env.items()]
        self._write(self.variables, b"".join(lines))
        self._write(self.resolver, b"")
        self.resolver.chmod(0o444)
        if self.profile is not None:
            self._write(self.profile, self._profile)

    def _write(self, path: Path, data: bytes) -> None:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(fd, "wb") as file:
            file.write(data)


def _line(name: str, value: str) -> bytes:
    try:
        line = f"{name}={value}\n".encode()
    except UnicodeEncodeError:
        line = b""
    if not line or len(line) > _LINE_BYTES or any(mark in line[:-1] for mark in b"\n\r\0"):
        why = f"the driver container passes no variable like {name}: one line of UTF-8, {_LINE_BYTES:,} bytes at most"
        raise SandboxUnavailableError(why, "Give the program a file instead, or use the driver bwrap.")
    return line


class Container:
    """The container as the settings say it."""

    def __init__(self, mark: str, program: str, image: str, runtime: str = "") -> None:
        self.mark = mark
        self.program = program
        self.image = image
        self.runtime = runtime

    def run(self, spec: Spec, identity: Identity, files: RunFiles) -> list[str]:
        """The words that run a program."""
        podman = self.program.endswith("podman")
        words = [self.program, "run", "--name", self._name(spec.id), *_CLOSED, *(_PODMAN if podman else ())]
        if files.profile is not None:
            words += ["--security-opt", f"seccomp={files.profile}"]
        if self.runtime:
            words += ["--runtime", self.runtime]
        if identity.uid is not None:
            words += ["--user", f"{identity.uid}:{identity.gid}"]
        elif podman:
            words += ["--userns", "keep-id"]
        words += [*_limits(spec), "--workdir", spec.cwd]
        ours = Mount(spec.workspace, WORKSPACE, writable=True), Mount(files.resolver, "/etc/resolv.conf")
        for mount in (*ours, *spec.mounts):
            words += _bind(mount)
        return [*words, "--env-file", str(files.variables), "--entrypoint", spec.argv[0], self.image, *spec.argv[1:]]

    def remove(self, run: str) -> list[str]:
        """The words that end a container and delete it."""
        return [self.program, "rm", "--force", self._name(run)]

    def ran_out_of_memory(self, run: str) -> list[str]:
        """The words that print `true` if the kernel ended a program that wanted more memory than it may have."""
        return [self.program, "inspect", "--format", "{{.State.OOMKilled}}", self._name(run)]

    def _name(self, run: str) -> str:
        return f"{self.mark}-{run}"


def _bind(mount: Mount) -> list[str]:
    """The words for a mount. By `--volume`, docker would make a folder that is deleted meanwhile once more."""
    fields = ["type=bind", f"source={mount.source}", f"target={mount.target}"]
    if not mount.writable:
        fields.append("readonly")
    line = StringIO()
    csv.writer(line, lineterminator="").writerow(fields)  # both read the word as a line of CSV
    return ["--mount", line.getvalue()]


def _limits(spec: Spec) -> list[str]:
    limits = spec.limits
    memory = str(limits.memory_bytes)
    words = ["--memory", memory, "--memory-swap", memory, "--pids-limit", str(limits.pids + OWN)]
    words += ["--cpus", f"{limits.cpu_percent / 100:.2f}", "--shm-size", str(limits.tmp_bytes)]
    held = {"nofile": limits.descriptors, "fsize": limits.file_bytes, "core": 0, "cpu": -(-limits.cpu_ms // 1000)}
    held["nproc"] = _PROCESSES
    for name, value in held.items():
        words += ["--ulimit", f"{name}={value}:{value}"]
    return [*words, "--tmpfs", f"/tmp:rw,nosuid,nodev,size={limits.tmp_bytes},mode=1777"]  # noqa: S108 - the container's own
