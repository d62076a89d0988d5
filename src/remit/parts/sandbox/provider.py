"""The provider of the sandbox tools. A conversation is the job or session that calls.

The arguments and results: what the sandbox tools take and give.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import mimetypes
import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from remit.capability import Opening
from remit.codes import Code
from remit.errors import ProviderError
from remit.parts.sandbox.artifacts import LeftOut, TooManyError
from remit.parts.sandbox.policy import SandboxPolicy, terms_of
from remit.parts.sandbox.sandbox import ChangedFile, Ran, Sandbox, SandboxRequest
from remit.parts.sandbox.snapshots import SnapshotLostError
from remit.parts.sandbox.wiring import open_sandbox
from remit.process.enclosure import MB, CommandMissingError, LooserError, Receipt, SandboxUnavailableError, Stream
from remit.process.live import LiveLines
from remit.tools.meta import Level, ToolMeta
from remit.tools.provider import CallContext, EvidenceCandidate, Preview, ToolResult, Toolset, arguments, declare

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


_PROVIDER: Final = "sandbox"
_SETUP_MS: Final = 30_000
"""The time that a call may take beside the program itself: the probe, snapshots, another run in the same workspace."""
_EXTENSIONS: Final = mimetypes.MimeTypes()


def _tools(policy: SandboxPolicy) -> tuple[ToolMeta, ...]:
    """The three tools; they are listed also if nothing here can isolate, and then refuse in words."""
    tool = partial(
        declare,
        provider=_PROVIDER,
        writes=True,
        capability_level=Level.L2,
        timeout_ms=_SETUP_MS,
        isolation="sandbox",
    )
    return (
        tool("sandbox.write_files", "Write files into the sandbox's workspace.", WriteArgs, WriteResult),
        tool(
            "sandbox.exec",
            "Run a command in the sandbox, with no access to this machine and its network.",
            ExecArgs,
            ExecResult,
            timeout_ms=policy.limits.wall_ms + _SETUP_MS,
            # Without a network nothing leaves the workspace, and that is restored before it runs again.
            idempotent=not policy.network,
        ),
        tool("sandbox.collect", "Take files out of the sandbox's workspace.", CollectArgs, CollectResult),
    )


class SandboxProvider(Toolset):
    """sandbox.write_files, sandbox.exec and sandbox.collect."""

    def __init__(self, sandbox: Sandbox) -> None:
        super().__init__(_PROVIDER, _tools(sandbox.policy))
        self._sandbox = sandbox

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        """Call a tool. Raises ProviderError: POLICY_DENIED and SANDBOX_UNAVAILABLE as codes of their own."""
        self._require(name)
        try:
            match name:
                case "sandbox.write_files":
                    return await self._write(arguments(WriteArgs, args), ctx)
                case "sandbox.exec":
                    return await self._exec(arguments(ExecArgs, args), ctx)
                case _:  # sandbox.collect
                    return await self._collect(arguments(CollectArgs, args), ctx)
        except LooserError as error:
            raise ProviderError(str(error), cause=Code.InvalidInput, code=Code.POLICY_DENIED) from error
        except (SandboxUnavailableError, CommandMissingError) as error:
            remedy = getattr(error, "remedy", "") or "`remit sandbox probe` shows what is missing."
            reason = f"{error}. {remedy}"
            raise ProviderError(reason, cause=None, code=Code.SANDBOX_UNAVAILABLE) from error
        except (TooManyError, ValueError) as error:
            raise ProviderError(str(error), cause=Code.InvalidInput) from error
        except (SnapshotLostError, OSError) as error:
            raise ProviderError(str(error), cause=None) from error

    async def reconcile(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult | None:  # noqa: ARG002 - the port's
        """None: the workspace is restored before a command runs again, and nothing else had an effect.

        Raises ProviderError for a command that could reach the network.
        """
        self._require_open()
        if name == "sandbox.exec" and self._sandbox.policy.network:
            raise ProviderError("The command could reach the network: what it did there is unknown.", cause=None)
        return None

    async def preview(self, name: str, args: dict[str, Any]) -> Preview | None:
        return await self.preview_within(name, args, ())

    async def preview_within(
        self, name: str, args: dict[str, Any], sandbox: Sequence[Mapping[str, Any]]
    ) -> Preview | None:
        self._require_open()
        try:
            if name == "sandbox.exec":
                return _exec_preview(arguments(ExecArgs, args), self._sandbox.policy, sandbox)
            if name == "sandbox.write_files":
                return _write_preview(arguments(WriteArgs, args))
            if name == "sandbox.collect":
                paths = arguments(CollectArgs, args).paths
                what = ", ".join(map(repr, paths)) or "all files"
                return Preview(what=f"Takes {what} out of the sandbox's workspace, and changes nothing there.")
        except LooserError as error:
            raise ProviderError(str(error), cause=Code.InvalidInput, code=Code.POLICY_DENIED) from error
        return None

    async def close(self) -> None:
        await super().close()
        await self._sandbox.close()

    # --- the tools

    async def _write(self, asked: WriteArgs, ctx: CallContext) -> ToolResult:
        files = [(file.path, _content(file)) for file in asked.files]
        await self._sandbox.write(ctx.conversation, files, inputs=asked.folder == "inputs")
        written = [Written(path=path, bytes=len(data), sha256=_sha256(data)) for path, data in files]
        return ToolResult(msgspec.to_builtins(WriteResult(files=written)))

    async def _exec(self, asked: ExecArgs, ctx: CallContext) -> ToolResult:
        wanted = SandboxRequest(
            conversation=ctx.conversation,
            key=ctx.idempotency_key,
            command=asked.command,
            stdin=asked.stdin.encode(),
            env=asked.env,
            skills=ctx.sandbox,
            layers=(asked.policy,),
        )
        live = LiveLines(ctx.progress)
        try:
            ran = await self._sandbox.run(wanted, live)
        finally:
            live.end()
        execution = ran.execution
        streams = {"stdout": execution.stdout, "stderr": execution.stderr}
        evidence = [
            EvidenceCandidate(
                kind=name, source="sandbox", retrieved_at=ctx.now, data=stream.data, metadata={"total": stream.total}
            )
            for name, stream in streams.items()
            if stream.data
        ]
        return ToolResult(msgspec.to_builtins(_result(ran, streams)), tuple(evidence))

    async def _collect(self, asked: CollectArgs, ctx: CallContext) -> ToolResult:
        harvest = await self._sandbox.collect(ctx.conversation, tuple(asked.paths), asked.policy, skills=ctx.sandbox)
        if ctx.keeper is not None:
            for (
                artifact
            ) in harvest.artifacts:  # whole and for good: as evidence, large ones are left out and all are erased
                await ctx.keeper.put(artifact.data)
        taken = [
            Taken(
                path=artifact.path,
                bytes=len(artifact.data),
                sha256=artifact.sha256,
                media_type=_media_type(artifact.path),
            )
            for artifact in harvest.artifacts
        ]
        evidence = [
            EvidenceCandidate(
                kind="artifact",
                source=f"workspace/{artifact.path}",
                retrieved_at=ctx.now,
                data=artifact.data,
                metadata={"path": artifact.path},
            )
            for artifact in harvest.artifacts
        ]
        result = CollectResult(artifacts=taken, left_out=list(harvest.left_out), more_left_out=harvest.more_left_out)
        return ToolResult(msgspec.to_builtins(result), tuple(evidence))


def _result(ran: Ran, streams: dict[str, Stream]) -> ExecResult:
    execution = ran.execution
    texts = {name: _text(stream) for name, stream in streams.items()}
    return ExecResult(
        status=execution.status,
        exit_code=execution.exit_code,
        signal=execution.signal,
        limit=execution.limit,
        stdout=texts["stdout"][0],
        stderr=texts["stderr"][0],
        stdout_bytes=execution.stdout.total,
        stderr_bytes=execution.stderr.total,
        truncated=[name for name, stream in streams.items() if stream.truncated],
        lossy=[name for name, (_, lossy) in texts.items() if lossy],
        files=list(ran.files),
        more_files=ran.more_files,
        workspace_before=ran.before,
        workspace_after=ran.after,
        restored=ran.restored,
        receipt=execution.receipt,
    )


def _exec_preview(asked: ExecArgs, policy: SandboxPolicy, skills: Sequence[Mapping[str, Any]]) -> Preview:
    terms = terms_of(policy, asked.command[0], skills, [asked.policy])
    network = f"and may reach {', '.join(terms.network)}" if terms.network else "without a network"
    limits = f"{terms.limits.wall_ms / 1_000:g} s and {terms.limits.memory_bytes // MB} MB"
    return Preview(what=f"Runs {shlex.join(asked.command)} in the sandbox, with {limits} at most, {network}.")


def _write_preview(asked: WriteArgs) -> Preview:
    files = [f"{file.path} ({len(_content(file)):,} bytes)" for file in asked.files]
    where = "/inputs" if asked.folder == "inputs" else "/workspace"
    return Preview(what=f"Writes in the sandbox, below {where}: {', '.join(files)}.")


def _text(stream: Stream) -> tuple[str, bool]:
    """Return the output as text, and whether some of it is not text. A character that the limit cuts is left out."""
    data = stream.data
    try:
        return data.decode(), False
    except UnicodeDecodeError as error:
        if stream.truncated and error.end == len(data) and len(data) - error.start < _CHARACTER:
            return data[: error.start].decode(), False
        return data.decode(errors="replace"), True


_CHARACTER: Final = 4
"""Bytes of the longest character in UTF-8."""


def _content(file: File) -> bytes:
    if (file.text is None) == (file.base64 is None):
        raise ProviderError(f"{file.path}: give either text or base64")
    if file.text is not None:
        return file.text.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(file.base64 or "", validate=True)
    except binascii.Error as error:
        raise ProviderError(f"{file.path}: the base64 is not valid: {error}") from error


def _sha256(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _media_type(path: str) -> str:
    return _EXTENSIONS.guess_type(path, strict=False)[0] or "application/octet-stream"


def open_sandbox_tools(opening: Opening) -> tuple[SandboxProvider]:
    """The provider of the sandbox that the settings describe."""
    return (SandboxProvider(open_sandbox(opening.settings)),)
