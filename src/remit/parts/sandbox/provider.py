"""The provider of the sandbox tools. A conversation is the job or session that calls."""

from __future__ import annotations

import base64
import binascii
import hashlib
import shlex
from collections.abc import Mapping, Sequence
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.codes import Code
from remit.errors import ProviderError
from remit.parts.sandbox.artifacts import SnapshotLostError, TooManyError
from remit.parts.sandbox.policy import SandboxPolicy, terms_of
from remit.parts.sandbox.settings import SETUP_MS, exec_terms
from remit.parts.sandbox.shapes import (
    CollectArgs,
    CollectResult,
    ExecArgs,
    ExecResult,
    File,
    Taken,
    WriteArgs,
    WriteResult,
    Written,
)
from remit.parts.sandbox.wiring import open_sandbox, own_settings, policy_of
from remit.process.enclosure import MB, CommandMissingError, LooserError, SandboxUnavailableError, Stream
from remit.process.live import LiveLines
from remit.tools.meta import Level, ToolMeta
from remit.tools.provider import CallContext, EvidenceCandidate, Preview, ToolResult, Toolset, arguments, declare

if TYPE_CHECKING:
    from collections.abc import Callable
    from mimetypes import MimeTypes

    from remit.capability import Opening
    from remit.parts.sandbox.sandbox import Ran, Sandbox

_PROVIDER: Final = "sandbox"


def _tools(policy: SandboxPolicy) -> tuple[ToolMeta, ...]:
    """The three tools; they are listed also if nothing here can isolate, and then refuse in words."""
    tool = partial(
        declare,
        provider=_PROVIDER,
        writes=True,
        capability_level=Level.L2,
        timeout_ms=SETUP_MS,
        isolation="sandbox",
    )
    return (
        tool("sandbox.write_files", "Write files into the sandbox's workspace.", WriteArgs, WriteResult),
        tool(
            "sandbox.exec",
            "Run a command in the sandbox, with no access to this machine and its network.",
            ExecArgs,
            ExecResult,
            **exec_terms(policy.limits.wall_ms, policy.network),
        ),
        tool("sandbox.collect", "Take files out of the sandbox's workspace.", CollectArgs, CollectResult),
    )


class SandboxProvider(Toolset):
    """sandbox.write_files, sandbox.exec and sandbox.collect.

    The operator's `policy` says which are listed; `make` makes the sandbox, which the first call loads.
    """

    def __init__(self, policy: SandboxPolicy, make: Callable[[], Sandbox]) -> None:
        super().__init__(_PROVIDER, _tools(policy))
        self._policy = policy
        self._make = make

    @cached_property
    def _sandbox(self) -> Sandbox:
        return self._make()

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
        if name == "sandbox.exec" and self._policy.network:
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
                return _exec_preview(arguments(ExecArgs, args), self._policy, sandbox)
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
        if "_sandbox" in vars(self):
            await self._sandbox.driver.close()

    # --- the tools

    async def _write(self, args: WriteArgs, ctx: CallContext) -> ToolResult:
        files = [(file.path, _content(file)) for file in args.files]
        await self._sandbox.write(ctx.conversation, files, inputs=args.folder == "inputs")
        written = [Written(path=path, bytes=len(data), sha256=_sha256(data)) for path, data in files]
        return ToolResult(msgspec.to_builtins(WriteResult(files=written)))

    async def _exec(self, args: ExecArgs, ctx: CallContext) -> ToolResult:
        from remit.parts.sandbox.sandbox import SandboxRequest  # noqa: PLC0415 - few processes run a command

        wanted = SandboxRequest(
            conversation=ctx.conversation,
            key=ctx.idempotency_key,
            command=args.command,
            stdin=args.stdin.encode(),
            env=args.env,
            skills=ctx.sandbox,
            layers=(args.policy,),
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

    async def _collect(self, args: CollectArgs, ctx: CallContext) -> ToolResult:
        harvest = await self._sandbox.collect(ctx.conversation, tuple(args.paths), args.policy, skills=ctx.sandbox)
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


def _exec_preview(args: ExecArgs, policy: SandboxPolicy, skills: Sequence[Mapping[str, Any]]) -> Preview:
    terms = terms_of(policy, args.command[0], skills, [args.policy])
    network = f"and may reach {', '.join(terms.network)}" if terms.network else "without a network"
    limits = f"{terms.limits.wall_ms / 1_000:g} s and {terms.limits.memory_bytes // MB} MB"
    return Preview(what=f"Runs {shlex.join(args.command)} in the sandbox, with {limits} at most, {network}.")


def _write_preview(args: WriteArgs) -> Preview:
    files = [f"{file.path} ({len(_content(file)):,} bytes)" for file in args.files]
    where = "/inputs" if args.folder == "inputs" else "/workspace"
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


@cache
def _extensions() -> MimeTypes:
    from mimetypes import MimeTypes  # noqa: PLC0415 - for who collects files

    return MimeTypes()


def _media_type(path: str) -> str:
    return _extensions().guess_type(path, strict=False)[0] or "application/octet-stream"


def open_sandbox_tools(opening: Opening) -> tuple[SandboxProvider]:
    """The provider of the sandbox that the settings describe. Raises SettingsError."""
    policy = policy_of(own_settings(opening.settings))
    return (SandboxProvider(policy, partial(open_sandbox, opening.settings)),)
