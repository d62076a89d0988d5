"""The modules of Remit that decide by rules, run from their own text without Remit and what it needs installed.

There is no second policy engine: `SOURCES` holds the very files. What they import of msgspec and of Remit's floor is
stood in for here, by the little that they use.
"""

from __future__ import annotations

import ast
import builtins
import datetime as dt
import enum
import hashlib
import json
import re
import sys
import typing
from types import MappingProxyType, ModuleType
from typing import Any, ClassVar

from remit.evidence.strict_json import canonical, digest

SOURCES: dict[str, str] = {}
"""The text of each module by its name."""
_BUILTIN = {name for name, value in vars(builtins).items() if isinstance(value, type)}


class RuleModules:
    """Loads the modules, each once, into a world of their own."""

    def __init__(self, sources: typing.Mapping[str, str]) -> None:
        self._sources = sources
        self._builtins = {**vars(builtins), "__import__": self._import, "zip": _zip}
        self._modules = {**_stand_ins(), "enum": _newer(enum, StrEnum=_StrEnum)}
        self._modules["re"] = re if sys.version_info >= (3, 11) else _newer(re, replaced={"compile": _compile})
        self._modules["datetime"] = _newer(dt, UTC=dt.timezone.utc)  # noqa: UP017 - Python 3.9

    def load(self, name: str) -> Any:
        """Return a module by its name."""
        module = self._modules.get(name)
        if module is None:
            module = self._modules[name] = ModuleType(name)
            vars(module)["__builtins__"] = self._builtins
            text: Any = self._sources[name]
            if sys.version_info < (3, 10):  # noqa: UP036 - this also runs without Remit
                text = ast.fix_missing_locations(_Unions().visit(ast.parse(text)))
            exec(compile(text, name, "exec"), vars(module))  # noqa: S102 - the text is this program's own
        return module

    def _import(self, name: str, *rest: Any) -> Any:
        names = rest[2] if len(rest) > 2 and rest[2] else ()  # noqa: PLR2004 - __import__(name, globals, locals, fromlist)
        if name not in self._modules and name not in self._sources:
            return builtins.__import__(name, *rest)
        module = self.load(name)
        for each in names:
            if f"{name}.{each}" in self._sources:
                setattr(module, each, self.load(f"{name}.{each}"))
        return module


class _Unions(ast.NodeTransformer):
    """Writes types that are joined with `|`, which Python 3.9 cannot, as a tuple of them."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.BitOr) or not (_is_type(node.left) or _is_type(node.right)):
            return node
        left = node.left.elts if isinstance(node.left, ast.Tuple) else [node.left]
        return ast.Tuple([*left, node.right], ast.Load())


def _is_type(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return node.value is None
    return isinstance(node, ast.Name) and node.id in _BUILTIN


def _zip(*parts: Any, strict: bool = False) -> Any:
    """Pair parts as `zip` does; those that have to be as long as each other are, in what is recorded."""
    lists = [list(part) for part in parts]
    if strict and len({len(part) for part in lists}) > 1:
        raise ValueError("the parts differ in length")
    return builtins.zip(*lists)  # noqa: B905 - Python 3.9


class _StrEnum(str, enum.Enum):  # noqa: UP042 - it stands in for that class
    """A text that is one of a few, as `enum.StrEnum` of Python 3.11."""

    def __str__(self) -> str:
        return str(self.value)


def _compile(pattern: str, flags: int = 0) -> Any:
    """Compile a pattern; those that give nothing back, which Python 3.11 knows, match the same if they may."""
    return re.compile(pattern.replace("*+", "*"), flags)


def _newer(
    module: ModuleType, *, replaced: typing.Mapping[str, Any] = MappingProxyType({}), **names: Any
) -> ModuleType:
    """Return a module with what later versions of Python have in it, or have in another form."""
    newer = ModuleType(module.__name__)
    vars(newer).update({**names, **vars(module), **replaced})
    return newer


class _Field(typing.NamedTuple):
    """A default that is made for each struct."""

    default_factory: typing.Callable[[], Any]


class _Fields(type):
    """Collects the fields of structs from their annotations."""

    def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any], **_: Any) -> Any:
        """Make the type; `_` are the options that msgspec takes."""
        fields = {field: None for base in bases for field in getattr(base, "__struct_fields__", ())}
        own = [field for field, kind in members.get("__annotations__", {}).items() if not kind.startswith("ClassVar")]
        fields.update(dict.fromkeys(own))
        defaults = {default: value for base in bases for default, value in getattr(base, "defaults_", {}).items()}
        defaults.update({field: members.pop(field) for field in own if field in members})
        return super().__new__(
            cls, name, bases, {**members, "__struct_fields__": tuple(fields), "defaults_": defaults, "kinds_": own}
        )

    def __init__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any], **_: Any) -> None:
        super().__init__(name, bases, members)

    def __or__(cls, other: Any) -> Any:
        """Join types, which Python 3.9 cannot, as a tuple of them."""
        return (cls, other)

    def __ror__(cls, other: Any) -> Any:
        return (*other, cls) if isinstance(other, tuple) else (other, cls)


class _Struct(metaclass=_Fields):
    """A value of named fields, as `msgspec.Struct`."""

    __struct_fields__: ClassVar[tuple[str, ...]] = ()
    defaults_: ClassVar[dict[str, Any]] = {}

    def __init__(self, *values: Any, **named: Any) -> None:
        fields = {**dict(zip(self.__struct_fields__, values)), **named}  # noqa: B905 - Python 3.9 knows no `strict`
        for field in self.__struct_fields__:
            if field not in fields:
                default = self.defaults_[field]
                fields[field] = default.default_factory() if isinstance(default, _Field) else default
        if fields.keys() != set(self.__struct_fields__):
            raise TypeError(f"{type(self).__name__} has no such fields: {', '.join(fields)}")
        vars(self).update(fields)
        check = getattr(self, "__post_init__", None)
        if check is not None:
            check()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(tuple(vars(self).values()))


class _PolicyError(Exception):
    """Any error of Remit: a message, and what to do about it."""

    def __init__(self, message: str, **_: Any) -> None:
        super().__init__(message)
        self.message = message


def _convert(value: dict[str, Any], kind: Any) -> Any:
    """Return a struct of a JSON object; lists become the tuples that they were."""
    return kind(**{name: tuple(item) if isinstance(item, list) else item for name, item in value.items()})


def _replace(struct: Any, **changes: Any) -> Any:
    return type(struct)(**{**vars(struct), **changes})


def _stand_ins() -> dict[str, ModuleType]:
    texts = {"decode": lambda text, **_: json.loads(text), "encode": canonical}
    structs = {"replace": _replace}
    errors = dict.fromkeys(("PolicyError", "NotCanonicalError", "NameInvalidError"), _PolicyError)
    members: dict[str, dict[str, Any]] = {
        "msgspec.structs": structs,
        "msgspec": {
            "Struct": _Struct,
            "json": _space("json", texts),
            "structs": _space("structs", structs),
            "DecodeError": ValueError,
            "ValidationError": TypeError,
            "convert": _convert,
            "field": _Field,
        },
        "remit.errors": errors,
        "remit.canonical": {"canonical": canonical, "digest": digest, "sha256": _sha256},
        "remit.policy": {},
    }
    return {name: _space(name, values) for name, values in members.items()}


def _space(name: str, members: dict[str, Any]) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(members)
    return module


def _sha256(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
