"""The parts of a section of the settings: types with limits, and what a type does not say.

A section of the core is a `Section` in a file of remit.settings.sections, and a line in remit.settings.model; a part
names its own in its `Capability`, and the door declares those of the parts that ship. The loader, `remit config` and
docs/configuration.md all read these classes; a setting exists nowhere else. The modules of both do not postpone their
annotations: every start would compile each of them from its text.

The two settings of a part that signs: an Ed25519 key, or a program that prints it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, Final, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from remit.errors import SettingsError
from remit.nearest import did_you_mean
from remit.redact import MASK, mask
from remit.regex import regex
from remit.settings.file import Base
from remit.settings.pictures import command

Count = Annotated[int, msgspec.Meta(ge=1, le=100_000)]
Bytes = Annotated[int, msgspec.Meta(ge=1, le=2**40)]
Seconds = Annotated[int, msgspec.Meta(ge=1, le=10 * 365 * 86_400)]
Millis = Annotated[int, msgspec.Meta(ge=1, le=86_400_000)]
Texts = tuple[Annotated[str, msgspec.Meta(min_length=1)], ...]
Tables = tuple[dict[str, Any], ...]
T = TypeVar("T", bound=msgspec.Struct)
_KEY: Final = regex(r"at `\$\.(\w+)")
"""The key in what msgspec says of a table."""


class About(NamedTuple):
    """Facts that the type of a setting does not say."""

    meaning: str
    env: tuple[str, ...] = ()
    """Environment names beside `REMIT_<SECTION>_<NAME>`, which comes first if several are set."""
    fixed: Mapping[str, str] = {}
    """Environment names that mean one thing, however they are set."""
    separator: str = ","
    """The text between the items of a list."""
    resolve: Callable[[Any, Base], Any] | None = None
    """Makes paths absolute and fills in an empty default. May raise OSError, RuntimeError or ValueError."""
    entry: str = ""
    """The reference of the struct that each table within the setting has, `"module:name"`; empty: none, or many."""
    picture: Callable[[Any], Any] | None = None
    """The function that shows a value that may hold secrets; an error does not quote it. None: any text, tokens masked.
    """
    claims: Callable[[Any], Iterator[str]] | None = None
    """The function that says what a value would do, for `remit trust`, each act as the end of "It would …"; None: set
    the setting to the value.
    """


class Section(msgspec.Struct, frozen=True):
    """One table of remit.toml; each field is `Annotated[type, About(…)]` with a default."""

    tables: ClassVar[str] = ""
    """The field that collects tables of any name, as in `[skills.NAME]`; empty: none."""
    array: ClassVar[str] = ""
    """The field that an array of tables of the section's name stands for, as in `[[clients]]`; empty: none."""

    def shown(self, name: str) -> Any:
        """The value of a setting without secrets."""
        value, picture = getattr(self, name), abouts(type(self))[name].picture
        if picture is not None:
            return picture(value)
        return mask(value) if isinstance(value, str) else value

    def __repr__(self) -> str:
        """Leave out what may be secret."""
        fields = ", ".join(f"{name}={self.shown(name)!r}" for name in self.__struct_fields__)
        return f"{type(self).__name__}({fields})"


@cache
def hints(section: type[Section]) -> Mapping[str, Any]:
    """The annotated type of each setting of a section, as msgspec takes it."""
    types = section.__annotations__
    if any(isinstance(hint, str) for hint in types.values()):  # as in a module that postpones its annotations
        types = get_type_hints(section, include_extras=True)
    return {name: types[name] for name in section.__struct_fields__}


@cache
def abouts(section: type[Section]) -> Mapping[str, About]:
    """Return what is said about each setting of a section."""
    return {name: get_args(hint)[-1] for name, hint in hints(section).items()}


def converted(table: Mapping[str, Any], kind: type[T], where: str, remedy: str = "") -> T:
    """Return a table within a section as its type. Raise SettingsError.

    `where` says which table it is. `remedy` says where its keys are explained; empty: they are listed.
    """
    known = kind.__struct_encode_fields__
    remedy = remedy or f"Its keys are: {', '.join(known)}."
    for key in table:
        if key not in known:
            raise SettingsError(f"{where}: there is no key {key}", remedy=did_you_mean(key, known) or remedy)
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        raise SettingsError(f"{where}: {_misfit(error, kind)}", remedy=remedy) from None


def _misfit(error: msgspec.ValidationError, struct: type[msgspec.Struct]) -> str:
    """Return what does not fit in a table: the key and its form, where that is in words, else what msgspec says."""
    at = _KEY.search(str(error))
    hint = get_type_hints(struct, include_extras=True).get(at[1]) if at is not None else None
    form = next(filter(None, map(form_of, (hint, *get_args(hint)))), "")
    return f"{at[1]} must be {form}" if at is not None and form else str(error)


def form_of(hint: Any) -> str:
    """Return the form of a text in words, as stands beside its pattern; empty: it has none."""
    notes = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((note.description or "" for note in notes if isinstance(note, msgspec.Meta) and note.pattern), "")


def place(value: str, base: Base) -> str:
    """Return a path in full; a name of the environment, and nothing, stay."""
    return str(base.path(value)) if value and not value.startswith("${") else value


def _key(value: Any) -> Any:
    return value if isinstance(value, str) and "PRIVATE" not in value else MASK


def key_about(more: str = "") -> About:
    """Return the facts of the setting `key`; `more` is said at the end."""
    meaning = (
        "The Ed25519 key to sign with: the path of a PEM file that only you can read, or `${NAME}` for PEM in the "
        "environment."
    )
    return About(f"{meaning} {more}".rstrip(), resolve=place, picture=_key)


KeyCommand = Annotated[
    Texts, About("A program and its arguments that print the key as PEM; in the place of `key`.", picture=command)
]
