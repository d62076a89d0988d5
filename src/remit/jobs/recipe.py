"""Recipes: durable Python functions, their registry, and what binds arguments to one.

The version of a recipe's code: a digest of what it runs, without comments, layout and documentation.

The digest covers the function, the functions and classes of the user's own modules that it names (and what those
name), constants they read, and what a closure holds. Standard library, installed packages and Remit itself are not in
it. It stands on the source as `ast.unparse` writes it, so that a comment is not another version.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
import textwrap
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from functools import cache, cached_property
from pathlib import Path
from types import CodeType, FunctionType, MappingProxyType, ModuleType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Final,
    Generic,
    ParamSpec,
    TypeVar,
    cast,
    get_args,
    get_type_hints,
    overload,
)

import msgspec

from remit.codes import Code
from remit.errors import NameInvalidError, NotFoundError, ProviderError, SettingsError, UsageError
from remit.frames import is_own, place_of
from remit.jobs.bound import RecipeCall
from remit.nearest import did_you_mean
from remit.regex import regex
from remit.tools.hints import from_json, to_json

if TYPE_CHECKING:
    from remit.jobs.run import Run


_DIGITS: Final = 12
_CONSTANTS: Final = (str, bytes, int, float, complex, bool, type(None))


def code_digest(function: Callable[..., Any]) -> str:
    """Digest of the function's code and of the user's code that it uses: 12 hexadecimal digits."""
    parts = sorted(_parts(function))
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


def text_digest(function: Callable[..., Any]) -> str:
    """Digest of the function's own text, as Remit recorded it before `code_digest`."""
    try:
        source = inspect.getsource(function).encode()
    except (OSError, TypeError):
        source = function.__code__.co_code
    return hashlib.sha256(source).hexdigest()[:_DIGITS]


@cache
def code_version(setting: str, folder: str) -> str:
    """The version that a setting names: `package:NAME`, `git` (the commit of `folder`), or the text itself.

    Raises SettingsError if there is no such package or commit.
    """
    kind, _, name = setting.partition(":")
    if kind == "package":
        from importlib import metadata  # noqa: PLC0415 - slow to load, and few settings name a package

        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError as error:
            raise SettingsError(f"jobs.code_version: no package is named {name!r}") from error
    if setting != "git":
        return setting
    from remit.process.git import present_commit  # noqa: PLC0415 - few settings name git

    try:
        return present_commit(Path(folder))
    except ProviderError as error:
        raise SettingsError(f"jobs.code_version: {folder} has no commit that git can name") from error


def folder_of(function: Callable[..., Any]) -> str:
    """The folder of the file that holds a function."""
    return str(Path(function.__code__.co_filename).resolve().parent)


def _parts(function: Callable[..., Any]) -> Iterator[str]:
    """A text for everything that counts, each once."""
    ids: set[int] = set()
    waiting: list[tuple[str, Any]] = [("", function)]
    while waiting:
        name, value = waiting.pop()
        value = inspect.unwrap(value) if isinstance(value, FunctionType) else value
        if id(value) in ids:
            continue
        ids.add(id(value))
        if isinstance(value, FunctionType) and (value is function or _is_users(value.__module__)):
            yield f"{value.__qualname__}\n{_source(value)}"
            waiting += _used(value)
        elif isinstance(value, type) and _is_users(value.__module__):
            yield f"{value.__qualname__}\n{_source(value)}"
            waiting += [pair for method in vars(value).values() for pair in _methods(method)]
        elif (shown := _constant(value)) is not None:
            yield f"{name}={shown}"


def _methods(member: Any) -> list[tuple[str, Any]]:
    """Return what a member of a class uses."""
    member = getattr(member, "__func__", getattr(member, "fget", member))
    return _used(member) if isinstance(member, FunctionType) else []


def _used(function: FunctionType) -> list[tuple[str, Any]]:
    """Say what a function names outside of itself: globals, parts of the user's modules, and what its closure holds."""
    names, scope = sorted(_names(function.__code__)), function.__globals__
    values = [(name, _global(function.__module__, name, scope[name])) for name in names if name in scope]
    modules = [scope[name] for name in names if isinstance(scope.get(name), ModuleType)]
    for module in modules:
        if _is_users(module.__name__):
            held = vars(module)
            values += [(name, _global(module.__name__, name, held[name])) for name in names if name in held]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            values.append((name, cell.cell_contents))
        except ValueError:  # not filled yet
            continue
    return values


def _global(module: str, name: str, value: Any) -> Any:
    """A function or a class; for anything else how the module assigns it, since its value may differ by process."""
    if isinstance(value, FunctionType | type):
        return value
    return _assignments(module).get(name, value)


@cache
def _assignments(module: str) -> dict[str, str]:
    """The assignments at the top of a user's module, by name."""
    if not _is_users(module) or module not in sys.modules:
        return {}
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (OSError, TypeError, SyntaxError):
        return {}
    assignments: dict[str, str] = {}
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        for target in targets:
            if isinstance(target, ast.Name):
                assignments[target.id] = assignments.get(target.id, "") + ast.unparse(node)
    return assignments


def _names(code: CodeType) -> set[str]:
    """Names that code and the code within it reads."""
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*inner)


def _source(value: FunctionType | type) -> str:
    """The source without comments, layout and documentation; the bytecode of a function without a file."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(value)))
    except (OSError, TypeError, SyntaxError):
        return value.__code__.co_code.hex() if isinstance(value, FunctionType) else ""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and ast.get_docstring(node) is not None
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def _constant(value: Any) -> str | None:
    """A plain value as text; None for anything else, which is state and not code."""
    if isinstance(value, _CONSTANTS):
        return repr(value)
    if not isinstance(value, tuple | frozenset):
        return None
    parts = [part for entry in value if (part := _constant(entry)) is not None]
    if len(parts) < len(value):
        return None
    return f"({', '.join(parts if isinstance(value, tuple) else sorted(parts))})"


@cache
def _is_users(name: str) -> bool:
    """Return whether a module is the user's own: not of Python, not installed, not of Remit."""
    if name.partition(".")[0] in sys.stdlib_module_names:
        return name == "__main__"
    file = getattr(sys.modules.get(name), "__file__", None)
    path = str(Path(file).resolve()) if file else ""
    return is_own(path)


P = ParamSpec("P")
T = TypeVar("T")

_NAME: Final = regex(r"[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)*")


def declared(execution_version: str) -> str:
    """The version that a recipe declares, of an execution version; the whole of it, if it has no digest."""
    return execution_version.rpartition("+")[0] or execution_version


def recipe_of(bound: RecipeCall[T]) -> Recipe[..., T]:
    """The recipe behind bound arguments, as which it was called. Raises UsageError if it is another value."""
    _check_call(bound)
    return cast("Recipe[..., T]", bound.recipe)


def _check_call(bound: object) -> None:
    if not isinstance(bound, RecipeCall):
        remedy = f"Call the recipe: {bound.name}(…)." if isinstance(bound, Recipe) else "Give a recipe with arguments."
        raise UsageError(f"{bound!r} is not a call of a recipe", code=Code.INVALID_INPUT, remedy=remedy)


class Recipe(Generic[P, T]):
    """A durable function. Calling it binds arguments, as calling a coroutine function makes a coroutine."""

    def __init__(
        self,
        function: Callable[Concatenate[Run, P], Awaitable[T]],
        name: str,
        version: str,
        migrates: tuple[str, ...] = (),
        schedule: str | Mapping[str, Any] = "",
    ) -> None:
        if not _NAME.fullmatch(name):
            raise NameInvalidError(
                f"{name!r} is not a recipe name", remedy="Use lower-case words, joined by '_' or '.'."
            )
        if not inspect.iscoroutinefunction(function):
            raise UsageError(f"the recipe {name!r} is not an async function", remedy="Write `async def`.")
        self.function = function
        self.name = name
        self.version = version
        self._migrates = frozenset(migrates)
        self.schedule = schedule
        """A cron expression, or what a `[[schedules]]` table says; empty: it starts by nothing of its own."""
        self.deployed = ""
        """The version of the deployment, if settings name one."""
        self.file = ""
        """The file that it was loaded from, if a person named that and no setting does."""
        self.admits: Callable[[Mapping[str, Any]], None] | None = None
        """Raises UsageError for arguments of which nothing can come: no job is created with them."""
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__wrapped__ = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> RecipeCall[T]:
        """Bind arguments by position or name. Raises UsageError (INVALID_INPUT) where they do not fit."""
        try:
            bound = self.signature.bind(*args, **kwargs)
            bound.apply_defaults()
            return RecipeCall(self, to_json(dict(bound.arguments)))
        except (TypeError, ValueError) as error:
            raise self._misfit(str(error)) from error

    def bind(self, arguments: Mapping[str, Any], *, strict: bool = True) -> RecipeCall[T]:
        """Bind arguments that came as JSON; `strict=False` also takes numbers and booleans written as text."""
        try:
            self.signature.bind(**arguments)
            converted = {name: self._typed(name, value, strict=strict) for name, value in arguments.items()}
            return self(**converted)  # type: ignore[call-arg]  # bound above
        except (TypeError, msgspec.ValidationError) as error:
            raise self._misfit(str(error)) from error

    def arguments(self, recorded: Mapping[str, Any]) -> dict[str, Any]:
        """Recorded input as the function's parameter types. Raises UsageError where they do not take it (any more)."""
        try:
            if recorded.keys() != self._names:
                self.signature.bind(**recorded)  # slow, and one that does not bind says why
            return {name: self._typed(name, value) for name, value in recorded.items()}
        except (TypeError, msgspec.ValidationError) as error:
            raise self._misfit(str(error)) from error

    def chosen(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments, as JSON, without those that are the defaults of their parameters."""
        defaults = self.defaults
        return {name: value for name, value in arguments.items() if name not in defaults or value != defaults[name]}

    def _typed(self, name: str, value: Any, *, strict: bool = True) -> Any:
        """A parameter's value in its type. Raises msgspec.ValidationError, which names the parameter."""
        try:
            return from_json(value, self.hints.get(name, Any), strict=strict)
        except msgspec.ValidationError as error:
            raise msgspec.ValidationError(f"{name}: {error}{_choices(self.hints.get(name))}") from error

    @cached_property
    def signature(self) -> inspect.Signature:
        """The function's parameters without the run."""
        signature = inspect.signature(self.function)
        return signature.replace(parameters=tuple(signature.parameters.values())[1:])

    @property
    def outline(self) -> Outline:
        """The recipe in a line."""
        about = inspect.cleandoc(self.__doc__ or "").partition("\n")[0]
        return Outline(self.name, about, tuple(self.signature.parameters))

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(self.signature.parameters)

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """Return the defaults of parameters, as JSON, where they can be written so."""
        defaults: dict[str, Any] = {}
        for parameter in self.signature.parameters.values():
            if parameter.default is not parameter.empty:
                with suppress(TypeError, ValueError):
                    defaults[parameter.name] = to_json(parameter.default)
        return defaults

    @cached_property
    def hints(self) -> dict[str, Any]:
        """The function's type hints."""
        try:
            return get_type_hints(self.function)
        except NameError:
            # A hint names something imported for type checkers only; what cannot be resolved is not converted.
            return {}

    def __repr__(self) -> str:
        returned = self.signature.return_annotation
        written = "" if returned is inspect.Signature.empty else inspect.formatannotation(returned).strip("'")
        result = f" -> {written}" if written else ""
        return f"<recipe {self.name}({', '.join(map(shown, self.signature.parameters.values()))}){result}>"

    @property
    def execution_version(self) -> str:
        """The declared version and a digest of the code, so that an edit without a new version shows (rule 6).

        With `jobs.code_version` the version of the deployment stands in place of the digest.
        """
        return f"{self.version}+{self.deployed or self._code_digest}"

    def runs(self, recorded: str) -> bool:
        """Return whether this is the code of a recorded execution version, also in the form of an older Remit."""
        return recorded == self.execution_version or recorded in self.carries

    def migrates(self, recorded: str) -> bool:
        """Return whether this code continues jobs that a recorded execution version began."""
        return not self._migrates.isdisjoint({recorded, declared(recorded)})

    @property
    def carries(self) -> frozenset[str]:
        """Every execution version that this code is, the form of an older Remit among them."""
        return frozenset({self.execution_version, f"{self.version}+{self._text_digest}"})

    @cached_property
    def _code_digest(self) -> str:
        return code_digest(self.function)

    @cached_property
    def _text_digest(self) -> str:
        return text_digest(self.function)

    def deploy(self, setting: str) -> None:
        """Take the version of the deployment that `jobs.code_version` names. Raises SettingsError."""
        self.deployed = code_version(setting, folder_of(self.function)) if setting else ""

    def _misfit(self, reason: str) -> UsageError:
        parameters = ", ".join(map(shown, self.signature.parameters.values()))
        return UsageError(
            f"{self.name}: {reason}", code=Code.INVALID_INPUT, remedy=f"Its parameters are: {parameters or 'none'}."
        )


@overload
def recipe(name: Callable[Concatenate[Run, P], Awaitable[T]], /) -> Recipe[P, T]: ...


@overload
def recipe(
    name: str | None = None,
    *,
    version: str = "1",
    migrates: Iterable[str] = (),
    schedule: str | Mapping[str, Any] = "",
) -> Callable[[Callable[Concatenate[Run, P], Awaitable[T]]], Recipe[P, T]]: ...


def recipe(
    name: str | Callable[Concatenate[Run, P], Awaitable[T]] | None = None,
    *,
    version: str = "1",
    migrates: Iterable[str] = (),
    schedule: str | Mapping[str, Any] = "",
) -> Recipe[P, T] | Callable[[Callable[Concatenate[Run, P], Awaitable[T]]], Recipe[P, T]]:
    """Make a recipe of an async function whose first parameter is the run; without a name, it takes the function's.

    `migrates` names earlier versions whose jobs this code continues (setting `jobs.mismatch = "migrate"`): declared
    versions, or whole execution versions as they are recorded. `run.version` says which one a job began under.
    `schedule` starts it by the clock: a cron expression, or the keys of a `[[schedules]]` table (docs/schedules.md).
    Raises NameInvalidError, or UsageError if the function cannot be a recipe.
    """
    if callable(name):
        return Recipe(name, name.__name__, version)

    def wrap(function: Callable[Concatenate[Run, P], Awaitable[T]]) -> Recipe[P, T]:
        return Recipe(function, name or function.__name__, version, tuple(migrates), schedule)

    return wrap


def _choices(hint: Any) -> str:
    """Say what a person may write for an enumeration: its values; nothing for other types."""
    kinds = (kind for kind in (hint, *get_args(hint)) if isinstance(kind, type) and issubclass(kind, Enum))
    values = ", ".join(str(member.value) for kind in kinds for member in kind)
    return f"; write one of: {values}" if values else ""


def shown(parameter: inspect.Parameter) -> str:
    """A parameter as Python writes it; a hint without quotes, as where annotations are texts."""
    text, hint = str(parameter), parameter.annotation
    return text.replace(repr(hint), hint, 1) if isinstance(hint, str) else text


class Outline(msgspec.Struct, frozen=True):
    """A recipe in a line."""

    name: str
    about: str
    """The first line of its documentation."""
    parameters: tuple[str, ...]


class Recipes:
    """The recipes a process knows, by name and declared version; the one registered last runs new jobs of its name.

    Those of `loaders`, by their names, came before the others and are loaded when one is used; `outlines` tell of some
    without loading them.
    """

    def __init__(
        self,
        recipes: Iterable[Recipe[..., Any]] = (),
        code_version: str = "",
        loaders: Mapping[str, Callable[[], Recipe[..., Any]]] = MappingProxyType({}),
        outlines: Mapping[str, Outline] = MappingProxyType({}),
    ) -> None:
        self._outlines = outlines
        self._by_name: dict[str, dict[str, Recipe[..., Any]]] = {}
        self._code_version = code_version
        self._loaders = dict(loaders)
        for each in recipes:
            self.add(each)

    def add(self, added: Recipe[..., Any]) -> None:
        """Register a recipe; the same one twice is fine."""
        self._load(added.name)
        versions = self._by_name.setdefault(added.name, {})
        known = versions.get(added.version)
        if known is None:
            added.deploy(self._code_version)
            versions[added.version] = added
        elif known is not added and known.function is not added.function:
            places = f"{place_of(known.function)} and {place_of(added.function)}"
            msg = f"two recipes are named {added.name!r} and have the version {added.version!r}: {places}"
            raise NameInvalidError(msg, remedy="Rename one of them, or give it another version.")

    def get(self, name: str, recorded: str = "") -> Recipe[..., Any]:
        """The recipe of a name: the version that recorded a job, if it is here. Raises NotFoundError with close names.

        Otherwise the one with the same declared version, otherwise the one that was registered last.
        """
        match = self.find(name, recorded)
        if match is None:
            hint = did_you_mean(name, self.names(), most=3) or f"Known: {', '.join(self.names()) or 'none'}."
            raise NotFoundError(f"no recipe is named {name!r}", code=Code.UNKNOWN_RECIPE, remedy=hint)
        return match

    def all(self) -> list[Recipe[..., Any]]:
        """Every recipe, by name."""
        return [self.get(name) for name in self.names()]

    def outlines(self) -> list[Outline]:
        """Return what a face names and completes, by name; for the version of a recipe its code would be read."""
        known = self._outlines.keys() & self._loaders.keys()
        return [self._outlines[name] if name in known else self.get(name).outline for name in self.names()]

    def carries(self) -> set[tuple[str, str]]:
        """Every execution version that is here, with the name of its recipe."""
        every = [known for name in self.names() for known in self._versions(name).values()]
        return {(carrier.name, version) for carrier in every for version in carrier.carries}

    def find(self, name: str, recorded: str = "") -> Recipe[..., Any] | None:
        """The recipe that `get` returns; None if none has the name."""
        versions = self._versions(name)
        return _version_of(versions, recorded) if versions else None

    def names(self) -> list[str]:
        return sorted({*self._by_name, *self._loaders})

    def _versions(self, name: str) -> dict[str, Recipe[..., Any]]:
        self._load(name)
        return self._by_name.get(name, {})

    def _load(self, name: str) -> None:
        if name in self._loaders:
            loaded = self._loaders[name]()  # it stays to be loaded if this fails
            del self._loaders[name]
            self.add(loaded)


def _version_of(versions: dict[str, Recipe[..., Any]], recorded: str) -> Recipe[..., Any]:
    newest = next(reversed(versions.values()))
    if not recorded or newest.execution_version == recorded:
        return newest
    exact = next((version for version in versions.values() if version.runs(recorded)), None)
    return exact or versions.get(declared(recorded), newest)
