"""Tools written as Python functions.

Defaults that a function tool sets and its schema does not declare: no approver of a call sees them.

They are made when the call runs (a factory, such as a clock), or hold what JSON cannot say, or a ready schema leaves
them out. Empty lists, dicts and sets are not counted: there is nothing in them to see.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import reprlib
from collections.abc import Callable, Iterator, Mapping
from functools import update_wrapper
from typing import Any, Concatenate, Final, Generic, Literal, ParamSpec, Protocol, TypeVar, final, overload

import msgspec
import msgspec.inspect

from remit.codes import Code
from remit.errors import ProviderError, UsageError
from remit.frames import exit_words, frames_of
from remit.large import is_large
from remit.process.enclosure import SandboxTerms
from remit.redact import line
from remit.settings.mcp import terms_of
from remit.threads import Threads
from remit.tools import hints
from remit.tools.budget import parse_budget
from remit.tools.hints import hints_of
from remit.tools.meta import JsonSchema, Level, Retry, Risk, ToolMeta
from remit.tools.names import check_name
from remit.tools.provider import CallContext, EvidenceCandidate, ToolResult

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

PROVIDER_ID = "local"
"""Provider of the tools that are functions of this process."""


class FunctionTool(Generic[P, R_co]):
    """A function that is a tool: called directly it is the function; the gateway calls it through its provider.

    `P` are its arguments as a caller gives them: a CallContext that is its first parameter is not among them. To call
    such a function directly, give one to `function`.
    """

    def __init__(
        self,
        function: Callable[..., R_co],
        meta: ToolMeta,
        signature: hints.Signature,
        terms: SandboxTerms | None = None,
        retry_on: tuple[type[Exception], ...] = (),
        secrets: tuple[str, ...] = (),
    ) -> None:
        self.function = function
        self.meta = meta
        self.terms = terms
        """The terms on which its provider runs it in the sandbox; None: it runs in this process."""
        self.retry_on = retry_on
        """Exceptions that count as failed connections."""
        self.secrets = secrets
        """The names of the secrets that it takes of its CallContext."""
        self._arguments = signature.arguments
        self.built = signature.arguments is not None
        """Whether its type hints made its schema, and arguments become values of these types."""
        self.context = signature.context
        """The name of the parameter that takes the CallContext; None: it takes none."""
        self._names = signature.names
        self._called = _signature_called(function, signature.context)
        self.is_async = inspect.iscoroutinefunction(function)
        update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Return what the function returns; nothing is recorded."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<tool {self.meta.name}>"

    def arguments(self, *args: P.args, **kwargs: P.kwargs) -> dict[str, Any]:
        """Arguments as the gateway takes them, as JSON. Raises UsageError (INVALID_INPUT) if they do not fit."""
        try:
            return dict(hints.to_json(self._called.bind(*args, **kwargs).arguments))
        except TypeError as error:
            reason = f"{self.meta.name}: {error}"
            raise UsageError(reason, code=Code.INVALID_INPUT, remedy=f"It takes {self.usage}.") from error

    def typed(self, value: Any) -> Any:
        """A recorded result in the type that the function declares."""
        return hints.from_json(value, hints.returned(self.function))

    @property
    def usage(self) -> str:
        """The parameters that a caller gives, and the result, as Python writes them."""
        return str(self._called)

    async def invoke(
        self, args: Mapping[str, Any], ctx: CallContext | None = None, threads: Threads | None = None
    ) -> ToolResult:
        """Call the function with JSON arguments; its result comes back as JSON.

        An async function is cancelled with the call. A sync one runs in one of `threads`, which Python cannot stop:
        past its deadline it goes on unseen, so that what a sync tool with side effects did by then is uncertain (rule
        3). Raises ProviderError for arguments or a result that do not fit, and whatever the function raises.
        """
        large = is_large(args)  # what is large is worked on in a thread: it holds no one else up
        arguments = await asyncio.to_thread(self._arguments_of, args) if large else self._arguments_of(args)
        if self.context is not None:
            arguments[self.context] = ctx
        call: Callable[..., Any] = self.function
        try:
            return await self._run(call, arguments, threads)
        except self.retry_on as error:
            reason = f"{type(error).__name__}: {error}".removesuffix(": ")
            raise ProviderError(
                reason, cause=Code.NetworkError, code=Code.TOOL_UNAVAILABLE, frames=frames_of(error)
            ) from error

    async def _run(self, call: Callable[..., Any], args: dict[str, Any], threads: Threads | None) -> ToolResult:
        try:
            if not self.is_async:
                return await (threads or Threads(1)).run(lambda: _result(_run(call, args)))
            value = await call(**args)
        except (SystemExit, KeyboardInterrupt) as error:  # a tool ends a call, never the process that serves it
            text = exit_words(error)
            if not text:
                raise
            raise RuntimeError(f"the tool {text}") from error
        plain = value.value if isinstance(value, ToolResult) else value
        return await asyncio.to_thread(_result, value) if is_large(plain) else _result(value)

    def _arguments_of(self, args: Mapping[str, Any]) -> dict[str, Any]:
        names = self._names
        known = args if names is None or args.keys() <= names else {key: args[key] for key in args if key in names}
        if self._arguments is None:  # they were checked against the schema that was given
            return dict(known)
        try:
            arguments = msgspec.structs.asdict(hints.from_json(known, self._arguments))
        except msgspec.ValidationError as error:
            raise ProviderError(str(error)[:200], cause=Code.InvalidInput, code=Code.INVALID_TOOL_ARGS) from error
        if len(known) < len(arguments):
            return {name: value for name, value in arguments.items() if value is not msgspec.UNSET}
        return arguments


@final
class _Unrelated:
    """A type of which no function knows: one that takes it takes anything."""


class ToolDecorator(Protocol):
    """The type of `tool(…)`: for type checkers, a CallContext in front is no argument of the tool."""

    @overload
    def __call__(self, function: Callable[Concatenate[_Unrelated, P], R], /) -> FunctionTool[..., R]: ...

    @overload
    def __call__(self, function: Callable[Concatenate[CallContext, P], R], /) -> FunctionTool[P, R]: ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> FunctionTool[P, R]: ...


def tool(
    name: str,
    *,
    level: Level | str = Level.L1,
    idempotent: bool = False,
    side_effects: bool | None = None,
    confirm: bool | None = None,
    timeout: float = 30.0,
    version: str = "",
    retry: Retry | None = None,
    budget: Mapping[str, int] | None = None,
    description: str | None = None,
    input_schema: JsonSchema | None = None,
    output_schema: JsonSchema | None = None,
    unprotected: bool = False,
    sandbox: bool | Mapping[str, Any] | SandboxTerms = False,
    output_trusted: bool | Literal["always"] = True,
    retry_on: tuple[type[Exception], ...] = (),
    secrets: tuple[str, ...] = (),
) -> ToolDecorator:
    """Make a tool of a function: type hints become schemas, the docstring's first paragraph the description.

    `level` is "L0" (reads only), "L1" (writes) or "L2" (executes); above L0 a tool has side effects and asks for
    confirmation unless said otherwise. `idempotent`: a repetition with the same key changes nothing more. `timeout`:
    seconds. `budget`: what calls may use. `input_schema`, `output_schema`: ready JSON schemas in place of the type
    hints; the function takes the arguments by name, as JSON. `sandbox`: it runs in the sandbox; True or SandboxTerms.
    `unprotected`: an L2 function runs in this process, without isolation; else it is refused (rule 9).
    `retry_on`: exceptions that count as failed connections, which `retry` may cure. `secrets`: what `ctx.secret` gives.
    `output_trusted`: False if anyone may have written what it returns; "always" if it says only what your source does.
    Raises NameInvalidError, SchemaError, or UsageError if options contradict each other.
    """
    grade = _level(check_name(name), level)
    effects = grade > Level.L0 if side_effects is None else side_effects
    _check_options(name, grade, effects=effects, timeout=timeout, budget=budget)
    terms = _terms(name, sandbox, unprotected=unprotected)

    def decorate(function: Callable[..., Any], /) -> FunctionTool[..., Any]:
        signature = _signature_of(name, function, input_schema, secrets)
        _check_enclosable(name, function, terms, retry_on)
        meta = ToolMeta(
            name=name,
            provider_id=PROVIDER_ID,
            description=_first_paragraph(function) if description is None else description,
            input_schema=signature.input_schema,
            output_schema=signature.output_schema if output_schema is None else output_schema,
            capability_level=grade,
            risk_level=Risk.WRITE if effects else Risk.READ_ONLY,
            side_effects=effects,
            idempotent=idempotent,
            requires_confirm=grade > Level.L0 if confirm is None else confirm,
            timeout_ms=math.ceil(timeout * 1000),
            version=version,
            retry=retry,
            isolation=_isolation(grade, terms, unprotected=unprotected),
            budget=None if budget is None else dict(budget),
            output_trusted=output_trusted,
        )
        return FunctionTool(function, meta, signature, terms, retry_on, tuple(secrets))

    return decorate  # type: ignore[return-value] # one function serves all three forms


def _signature_of(
    name: str, function: Callable[..., Any], input_schema: JsonSchema | None, secrets: tuple[str, ...]
) -> hints.Signature:
    """Return what its hints say. Raise UsageError if it is no single function, or has no way to its secrets."""
    _check_callable(name, function)
    signature = hints.read(function) if input_schema is None else hints.given(function, input_schema)
    if secrets and signature.context is None:
        raise UsageError(f"{name}: without a CallContext it gets no secrets", remedy="Take one as first parameter.")
    return signature


def _signature_called(function: Callable[..., Any], context: str | None) -> inspect.Signature:
    """Return the function's signature without the parameter that takes the CallContext."""
    signature = inspect.signature(function)
    parameters = [parameter for name, parameter in signature.parameters.items() if name != context]
    return signature.replace(parameters=parameters)


def _run(function: Callable[..., Any], args: dict[str, Any]) -> Any:
    try:
        return function(**args)
    except StopIteration as error:  # a future cannot carry it: the call would never end
        raise RuntimeError("the tool raised StopIteration") from error


def _result(value: Any) -> ToolResult:
    evidence: tuple[EvidenceCandidate, ...] = ()
    if isinstance(value, ToolResult):
        value, evidence = value.value, value.evidence
    try:
        return ToolResult(hints.to_json(value), evidence)
    except (TypeError, ValueError, RecursionError) as error:
        reason = f"the tool returned a value that JSON cannot represent: {error}"
        raise ProviderError(
            reason, cause=Code.BadGateway, code=Code.RESULT_NOT_ENCODABLE, effect="committed"
        ) from error


def _level(name: str, level: Level | str) -> Level:
    try:
        return level if isinstance(level, Level) else Level[level]
    except KeyError as error:
        raise UsageError(f"{name}: {level!r} is not a level", remedy="Use L0, L1 or L2.") from error


def _check_options(name: str, grade: Level, *, effects: bool, timeout: float, budget: Mapping[str, int] | None) -> None:
    parse_budget(budget)
    if effects and grade is Level.L0:
        raise UsageError(f"{name}: L0 means read-only, so it has no side effects", remedy='Give it level="L1".')
    if not (0 < timeout < math.inf):
        raise UsageError(f"{name}: a timeout of {timeout} s is not positive and finite", remedy="Give it in seconds.")


def _terms(name: str, option: bool | Mapping[str, Any] | SandboxTerms, *, unprotected: bool) -> SandboxTerms | None:
    try:
        terms = terms_of(msgspec.convert(dict(option), SandboxTerms) if isinstance(option, Mapping) else option)
    except msgspec.ValidationError as error:
        remedy = "Give True, or any of roots, writable, network and limits."
        raise UsageError(f"{name}: sandbox: {error}", remedy=remedy) from error
    if terms is not None and unprotected:
        raise UsageError(f"{name}: it is both unprotected and in the sandbox", remedy="Leave one of them out.")
    return terms


def _isolation(grade: Level, terms: SandboxTerms | None, *, unprotected: bool) -> str:
    if terms is not None:
        return "sandbox"
    return ("unprotected" if unprotected else "none") if grade is Level.L2 else ""


def _check_enclosable(
    name: str,
    function: Callable[..., Any],
    terms: SandboxTerms | None,
    retry_on: tuple[type[Exception], ...],
) -> None:
    """In the sandbox a process of its own finds it by its name."""
    if terms is None:
        return
    if retry_on:
        remedy = "Raise ConnectionError there."
        raise UsageError(f"{name}: exceptions of a tool in the sandbox come out of it as text", remedy=remedy)
    if "<locals>" in function.__qualname__:
        raise UsageError(f"{name}: a function within another cannot run in the sandbox", remedy="Move it to the top.")


def _check_callable(name: str, function: object) -> None:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(f"{name}: a generator has no single result", remedy="Return a list.")
    if not inspect.isroutine(function):
        raise UsageError(f"{name}: @tool takes a function, not {function!r}")


def _first_paragraph(function: Callable[..., Any]) -> str:
    paragraph, _, _ = (inspect.getdoc(function) or "").partition("\n\n")
    return " ".join(paragraph.split())


_EMPTY: Final = frozenset({list, dict, set, frozenset, tuple, bytearray})
"""Factories of nothing."""
_WORDS: Final = 200
"""Characters of the words for a default."""


def undeclared(function: Callable[..., Any], input_schema: JsonSchema | None) -> dict[str, str]:
    """Return such defaults by place, a parameter or a field of the type of one (`job.at`), as words for people.

    Raises SchemaError for hints that cannot be read.
    """
    hints = hints_of(function)
    declared = (input_schema or {}).get("properties", {})
    defaults: dict[str, str] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if hints.get(name) is CallContext or name not in declared | hints:
            continue
        if parameter.default is not parameter.empty and "default" not in declared.get(name, {}):
            defaults[name] = line(f"({reprlib.repr(parameter.default)})", _WORDS)
        if name in declared and name in hints:
            defaults |= {f"{name}.{at}": how for at, how in _made(msgspec.inspect.type_info(hints[name]), ())}
    return defaults


def _made(kind: msgspec.inspect.Type, above: tuple[type, ...]) -> Iterator[tuple[str, str]]:
    """Yield the fields below a type whose defaults its schema does not declare, and what makes each."""
    if isinstance(kind, msgspec.inspect.StructType | msgspec.inspect.DataclassType):
        if kind.cls in above:
            return
        for field in kind.fields:
            if field.default_factory is not msgspec.NODEFAULT and field.default_factory not in _EMPTY:
                maker = getattr(field.default_factory, "__qualname__", "a function")
                yield field.name, line(f"(made by {maker} as the tool runs)", _WORDS)
            yield from ((f"{field.name}.{at}", how) for at, how in _made(field.type, (*above, kind.cls)))
        return
    for name in ("type", "item_type", "value_type"):
        if isinstance(inner := getattr(kind, name, None), msgspec.inspect.Type):
            yield from _made(inner, above)
    for inner in (*getattr(kind, "types", ()), *getattr(kind, "item_types", ())):
        yield from _made(inner, above)
