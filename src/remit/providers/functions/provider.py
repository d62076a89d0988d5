"""Tools that are functions of this process (`@tool`).

Calls a function tool in the sandbox: in a Python of its own, which sees the tool's module and our packages.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from remit.capability import Opening
from remit.codes import Code
from remit.errors import NameInvalidError, ProviderError
from remit.frames import place_of
from remit.process.enclosure import (
    PLACES,
    CommandMissingError,
    Enclosures,
    LooserError,
    Program,
    ProgramEnd,
    SandboxTerms,
    SandboxUnavailableError,
)
from remit.process.live import LiveLines
from remit.redact import MASK
from remit.redact.forms import ValueMask, with_lines
from remit.threads import Threads
from remit.tools.alone import FunctionAnswer, enclosed_call
from remit.tools.function import PROVIDER_ID, FunctionTool, undeclared
from remit.tools.meta import ToolMeta
from remit.tools.names import check_provider_id
from remit.tools.provider import CallContext, ToolResult

_TAIL: Final = 600
"""Characters of its stderr that stand behind a failure."""


async def call_enclosed(
    tool: FunctionTool[..., Any], terms: SandboxTerms, args: dict[str, Any], ctx: CallContext, enclosures: Enclosures
) -> ToolResult:
    """Call a tool on its terms. Raises ProviderError."""

    def report(done: float, total: float | None, text: str) -> None:
        ctx.progress(done, total, text)
        ctx.log(text)

    values = [ctx.secret(name) for name in tool.secrets]
    hide = ValueMask(with_lines(values), MASK).text if values else str
    live = LiveLines(report, hide)

    def heard(stream: Literal["stdout", "stderr"], data: bytes) -> None:
        if stream == "stderr":
            live(stream, data)

    try:
        program = await asyncio.to_thread(_program, tool, terms, enclosures)
        execution = await enclosures.run(program, heard, stdin=enclosed_call(tool, args, ctx))
    except SandboxUnavailableError as error:
        reason = f"{error}. {error.remedy or '`remit sandbox probe` shows what is missing.'}"
        raise ProviderError(reason, cause=None, code=Code.SANDBOX_UNAVAILABLE) from error
    except CommandMissingError as error:
        raise ProviderError(str(error), cause=None, code=Code.SANDBOX_UNAVAILABLE) from error
    except LooserError as error:
        raise ProviderError(str(error), cause=Code.InvalidInput, code=Code.POLICY_DENIED) from error
    except OSError as error:
        raise ProviderError(str(error), cause=None) from error
    finally:
        live.end()
    return _result(execution, ctx, hide)


def _program(tool: FunctionTool[..., Any], terms: SandboxTerms, enclosures: Enclosures) -> Program:
    function = tool.function
    name = function.__module__
    if name == "__main__":
        reason = "a tool of a script cannot run in the sandbox: put it into a module of its own"
        raise ProviderError(reason, cause=None)
    top = sys.modules[name.partition(".")[0]]
    code = _place(top)
    base = code.parent
    packages = [Path(path) for path in sys.path if Path(path).name in {"site-packages", "dist-packages"}]
    remit = _place(sys.modules["remit"])
    reads = dict.fromkeys([code, remit, *(path for path in packages if path.is_dir())])
    search = dict.fromkeys(map(str, [base, remit.parent, *packages]))
    return Program(
        command=(_python(enclosures), "-m", "remit.tools.alone", name, function.__qualname__),
        cwd=base,
        env={"PYTHONPATH": os.pathsep.join(search), "PYTHONSAFEPATH": "1"},
        terms=msgspec.structs.replace(
            terms, roots=_absolute(terms.roots, base), writable=_absolute(terms.writable, base)
        ),
        reads=tuple(reads),
    )


def _place(module: Any) -> Path:
    """The folder of a package, or the file of a module."""
    folders = [Path(folder) for folder in getattr(module, "__path__", ())]
    return (folders[0] if folders else Path(module.__file__)).resolve()


def _absolute(paths: tuple[str, ...], base: Path) -> tuple[str, ...]:
    return tuple([str((base / Path(path).expanduser()).absolute()) for path in paths])


def _python(enclosures: Enclosures) -> str:
    """A Python of this version that the sandbox's user can run."""
    ours = sys.executable
    if enclosures.sees(Path(ours)):
        return ours
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    other = next((path for place in PLACES if (path := Path(place, version)).exists()), None)
    if other is None:
        reason = f"the sandbox's user cannot run {Path(ours).resolve()}"
        remedy = f"Run Remit as a plain user, or install {version} in /usr."
        raise SandboxUnavailableError(reason, remedy)
    return str(other)


def _result(execution: ProgramEnd, ctx: CallContext, hide: Callable[[str], str]) -> ToolResult:
    if execution.limit == "wall_ms":
        raise ProviderError("the tool took longer than limits.wall_ms", cause=Code.Timeout)
    stderr = hide(execution.stderr.data.decode(errors="replace")).strip()[-_TAIL:]
    tail = f"; it last wrote: {stderr}" if stderr else ""
    if execution.limit:
        raise ProviderError(f"the tool hit the limit {execution.limit}{tail}", cause=None)
    if execution.stdout.truncated:
        came = execution.status == "SUCCEEDED"
        reason = "the tool's result is longer than limits.stdout_bytes"
        raise ProviderError(reason, cause=Code.BadGateway, effect="committed" if came else "")
    if execution.status != "SUCCEEDED":
        how = execution.signal or f"exit code {execution.exit_code}"
        raise ProviderError(f"the tool's process ended with {how}{tail}", cause=None)
    answer = msgspec.json.decode(execution.stdout.data, type=FunctionAnswer)
    for name in answer.refused:
        ctx.refuse_secret(name)
    if (failure := answer.failure) is not None:
        cause, code = Code.__members__.get(failure.cause), Code.__members__.get(failure.code)
        raise ProviderError(failure.message, cause=cause, code=code)
    return ToolResult(answer.value, answer.evidence)


class FunctionProvider:
    """Serves a set of function tools.

    Synchronous functions run in `threads`, sandboxed ones in what `enclosures` returns. Raises NameInvalidError if two
    have one name.
    """

    def __init__(
        self,
        tools: Iterable[FunctionTool[..., Any]],
        *,
        provider_id: str = PROVIDER_ID,
        threads: Threads | None = None,
        enclosures: Callable[[], Enclosures] | None = None,
    ) -> None:
        self._enclosures = enclosures
        self._threads = threads or Threads()
        self._provider_id = check_provider_id(provider_id)
        self._tools: dict[str, FunctionTool[..., Any]] = {}
        self._closed = False
        for each in tools:
            other = self._tools.setdefault(each.meta.name, each)
            if other is not each:
                raise NameInvalidError(
                    f"two functions define the tool {each.meta.name}: "
                    f"{place_of(other.function)} and {place_of(each.function)}",
                    remedy="Give one of them another name.",
                )

    @property
    def provider_id(self) -> str:
        return self._provider_id

    async def list_tools(self) -> Sequence[ToolMeta]:
        self._check_open()
        metas = (self._tools[name].meta for name in sorted(self._tools))
        return [msgspec.structs.replace(meta, provider_id=self._provider_id) for meta in metas]

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        if self._closed:
            self._check_open()
        tool = self._tools.get(name)
        if tool is None:
            raise ProviderError(f"no function defines the tool {name}", cause=Code.ToolNotFound)
        if tool.terms is None:
            return await tool.invoke(args, ctx, self._threads)
        if self._enclosures is None:  # never in this process instead (rule 9)
            raise ProviderError("there is no sandbox for it here", cause=None, code=Code.SANDBOX_UNAVAILABLE)
        return await call_enclosed(tool, tool.terms, args, ctx, self._enclosures())

    def slots(self, name: str) -> asyncio.Semaphore | None:
        tool = self._tools.get(name)
        return None if tool is None or tool.is_async or tool.terms is not None else self._threads.slots

    def secrets(self, name: str) -> tuple[str, ...]:
        tool = self._tools.get(name)
        return tool.secrets if tool is not None else ()

    def typed(self, name: str) -> bool:
        tool = self._tools.get(name)
        return tool is not None and tool.built

    def made(self, name: str) -> Mapping[str, str]:
        tool = self._tools.get(name)
        return undeclared(tool.function, tool.meta.input_schema) if tool is not None else {}

    async def close(self) -> None:
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise ProviderError(f"the provider {self._provider_id} is closed", cause=Code.ProviderClosed)


def open_functions(opening: Opening) -> tuple[FunctionProvider]:
    """The provider of the user's functions. Raises NameInvalidError if two have one name."""
    return (FunctionProvider(opening.tools, threads=opening.threads, enclosures=opening.enclosures),)
