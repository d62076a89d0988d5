"""Finds the tools, recipes, migrations and providers in the user's own modules."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import msgspec

from remit.codes import Code
from remit.errors import RemitError, UsageError
from remit.frames import frames_of
from remit.jobs.recipe import Recipe
from remit.redact import mask
from remit.tools.function import FunctionTool
from remit.tools.migration import Migration
from remit.tools.provider import ToolProvider

_PROVIDES: Final = ("list_tools", "invoke", "close")


class ModuleContents(msgspec.Struct, frozen=True):
    """What some modules define."""

    tools: tuple[FunctionTool[..., Any], ...]
    recipes: tuple[Recipe[..., Any], ...]
    migrations: tuple[Migration, ...]
    providers: tuple[ToolProvider, ...]


def find(names: Iterable[str], folder: Path) -> ModuleContents:
    """Import modules, given as dotted names or paths of Python files, and collect what they define at their top level.

    `folder` is put last on the import path: files next to remit.toml can import each other, and none of them takes the
    place of a library. Raises UsageError.
    """
    tools: dict[int, FunctionTool[..., Any]] = {}
    recipes: dict[int, Recipe[..., Any]] = {}
    migrations: dict[int, Migration] = {}
    providers: dict[int, ToolProvider] = {}
    for name in names:
        for value in vars(_load(name, folder)).values():
            if isinstance(value, FunctionTool):
                tools[id(value)] = value
            elif isinstance(value, Recipe):
                recipes[id(value)] = value
            elif isinstance(value, Migration):
                migrations[id(value)] = value
            elif all(callable(getattr(type(value), name, None)) for name in _PROVIDES):
                providers[id(value)] = value
    return ModuleContents(
        tuple(tools.values()), tuple(recipes.values()), tuple(migrations.values()), tuple(providers.values())
    )


def _load(name: str, folder: Path) -> ModuleType:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    try:
        return _load_file(Path(name)) if name.endswith(".py") else importlib.import_module(name)
    except (Exception, SystemExit) as error:
        where = "".join(f" ({frame})" for frame in frames_of(error)[-1:])
        if isinstance(error, SyntaxError):  # it is not where the module is loaded, but in it
            where = f" ({error.filename}:{error.lineno})"
        reason, remedy = (
            f"{type(error).__name__}: {error}",
            "Fix the module, or leave it out of app.modules and --module.",
        )
        if isinstance(error, RemitError):
            reason, remedy = str(error), error.remedy or remedy
        raise UsageError(
            f"cannot import {name}{where}: {mask(reason)}", code=Code.MODULE_UNLOADABLE, remedy=remedy
        ) from error


def _load_file(path: Path) -> ModuleType:
    path = path.resolve()
    file = str(path)
    known = next((m for m in list(sys.modules.values()) if getattr(m, "__file__", None) == file), None)
    if known is not None:
        return known
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        msg = f"{path} is not a Python file"
        raise ImportError(msg)
    module = importlib.util.module_from_spec(spec)
    if _is_free(path):
        sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    return module


def _is_free(path: Path) -> bool:
    """Return whether importing the file's name would lead to it, and not to a library of the same name."""
    try:
        spec = importlib.util.find_spec(path.stem)
    except (ImportError, ValueError):
        return False
    return spec is None or spec.origin == str(path)
