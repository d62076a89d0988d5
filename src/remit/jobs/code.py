"""The version of a recipe's code: a digest of what it runs, without comments, layout and documentation.

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
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from remit.errors import ProviderError, SettingsError
from remit.frames import is_own

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
    seen: set[int] = set()
    waiting: list[tuple[str, Any]] = [("", function)]
    while waiting:
        name, value = waiting.pop()
        value = inspect.unwrap(value) if isinstance(value, FunctionType) else value
        if id(value) in seen:
            continue
        seen.add(id(value))
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
    found = [(name, _global(function.__module__, name, scope[name])) for name in names if name in scope]
    modules = [scope[name] for name in names if isinstance(scope.get(name), ModuleType)]
    for module in modules:
        if _is_users(module.__name__):
            held = vars(module)
            found += [(name, _global(module.__name__, name, held[name])) for name in names if name in held]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found.append((name, cell.cell_contents))
        except ValueError:  # not filled yet
            continue
    return found


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
    found: dict[str, str] = {}
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        for target in targets:
            if isinstance(target, ast.Name):
                found[target.id] = found.get(target.id, "") + ast.unparse(node)
    return found


def _names(code: CodeType) -> set[str]:
    """Names that code and the code within it reads."""
    inner = [_names(one) for one in code.co_consts if isinstance(one, CodeType)]
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
    parts = [part for one in value if (part := _constant(one)) is not None]
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
