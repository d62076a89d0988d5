"""The arguments and results: what the sandbox tools take and give."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from remit.process.enclosure import Receipt

Path = Annotated[str, Meta(min_length=1, max_length=4_096, description="Relative, with `/` between folders.")]
Base64 = Annotated[str, Meta(max_length=64 * 1024 * 1024)]
Layer = Annotated[
    dict[str, Any],
    Meta(
        description='Makes the policy stricter for this call: `limits` (such as {"wall_ms": 1000}), `network`, '
        "`commands`, `min_isolation`. Anything looser is refused with POLICY_DENIED."
    ),
]


class File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file to write: text, or bytes in base64."""

    path: Path
    text: str | None = None
    base64: Base64 | None = None


class WriteArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Files for the workspace of this job or session."""

    files: Annotated[list[File], Meta(min_length=1, max_length=1_000)]
    folder: Annotated[
        Literal["work", "inputs"],
        Meta(description="`work` is /workspace; `inputs` is /inputs, which programs can only read."),
    ] = "work"


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was written."""

    path: str
    bytes: int
    sha256: str


class WriteResult(msgspec.Struct, frozen=True, kw_only=True):
    """The files that were written."""

    files: list[Written]


class ExecArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A command to run in /workspace."""

    command: Annotated[
        list[Annotated[str, Meta(max_length=128 * 1024)]],
        Meta(min_length=1, max_length=1_000, description='Such as ["python", "main.py"] or ["node", "-e", "…"].'),
    ]
    stdin: Annotated[str, Meta(max_length=16 * 1024 * 1024)] = ""
    env: Annotated[
        dict[
            Annotated[str, Meta(pattern="^[A-Za-z_][A-Za-z0-9_]*$", max_length=200)],
            Annotated[str, Meta(max_length=32_768)],
        ],
        Meta(max_length=100, description="Variables beside PATH, HOME, TMPDIR, LANG and USER, which stay as they are."),
    ] = {}
    policy: Layer = {}


class ChangedFile(msgspec.Struct, frozen=True):
    """A file that a run made, changed or deleted."""

    path: str
    change: str
    """`created`, `changed` or `deleted`."""
    bytes: int


class LeftOut(msgspec.Struct, frozen=True):
    """Something that was not taken, and why."""

    path: str
    why: str


class ExecResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a command ended, and what it left."""

    status: Literal["SUCCEEDED", "FAILED", "TIMEOUT"]
    exit_code: int | None
    signal: Annotated[str, Meta(description="The signal that ended it, such as SIGKILL.")]
    limit: Annotated[str, Meta(description="The limit that it hit, such as wall_ms or memory_bytes.")]
    stdout: str
    stderr: str
    stdout_bytes: Annotated[int, Meta(description="Bytes that were written, also those that were not kept.")]
    stderr_bytes: int
    truncated: Annotated[list[str], Meta(description="Which of stdout and stderr are cut at their limit.")]
    lossy: Annotated[
        list[str],
        Meta(description="Which of them are not UTF-8: the text shows �, the bytes are evidence."),
    ]
    files: Annotated[list[ChangedFile], Meta(description="Files that it created, changed or deleted.")]
    more_files: int
    workspace_before: Annotated[str, Meta(description="Digest of the workspace as the command found it.")]
    workspace_after: str
    restored: Annotated[
        bool,
        Meta(description="An earlier attempt did not end; the workspace was made what it was before it."),
    ]
    receipt: Receipt


class CollectArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which files of the workspace to take."""

    paths: Annotated[
        list[Path], Meta(max_length=1_000, description="Paths, or patterns such as `*.png`; all files if empty.")
    ] = []
    policy: Layer = {}


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was taken; its bytes are kept by their digest."""

    path: str
    bytes: int
    sha256: str
    media_type: str


class CollectResult(msgspec.Struct, frozen=True, kw_only=True):
    """What was taken, and what was not."""

    artifacts: list[Taken]
    left_out: Annotated[list[LeftOut], Meta(description="What was not taken, and why.")]
    more_left_out: int
