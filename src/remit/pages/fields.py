"""Arguments as the fields of a form, made from the tool's schema, and back with their types kept. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from remit.codes import Code
from remit.errors import UsageError
from remit.pages.page import restored, visible, written
from remit.redact import line

FieldKind = Literal["text", "long", "word", "number", "choice", "json", "file"]
"""`word`: one of several texts · `choice`: true or false · `file`: bytes, which arrive as base64."""
_LONG: Final = 60
"""Characters from which a text gets several lines."""
_MOST: Final = 40
"""Fields of a form; a call with more arguments is edited as JSON."""
WHOLE: Final = ""
"""The name of the field that stands for all arguments."""


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One argument."""

    name: str
    kind: FieldKind
    text: str
    """The text in it; of a file always empty, which stands for the one that it has."""
    choices: tuple[str, ...] = ()
    about: str = ""
    """The description in the schema."""
    required: bool = False


def fields_of(args: Mapping[str, Any], schema: Mapping[str, Any] | None) -> tuple[Field, ...]:
    """The fields for a call's arguments: those of the schema, then others that the call has."""
    properties = (schema or {}).get("properties")
    known: Mapping[str, Any] = properties if isinstance(properties, dict) else {}
    names = list(dict.fromkeys([*known, *args]))
    alike = len({visible(name) for name in names}) < len(names)
    if alike or len(names) > _MOST or not names or WHOLE in names:
        return (Field(name=WHOLE, kind="json", text=written(args), required=True),)
    needed = (schema or {}).get("required", ())
    return tuple(_field(name, args, known.get(name), required=name in needed) for name in names)


def args_of(
    names: Sequence[str], texts: Sequence[str], args: Mapping[str, Any], schema: Mapping[str, Any] | None
) -> Any:
    """The arguments that a filled form stands for. Raises UsageError that names the field."""
    if len(names) != len(texts):
        raise UsageError("The form's fields do not belong together.", code=Code.INVALID_INPUT)
    before = {visible(field.name): field for field in fields_of(args, schema)}
    if list(names) == [WHOLE] and WHOLE in before:
        whole = before[WHOLE].text
        return dict(args) if _same(texts[0], whole) else _json(restored(texts[0], whole), "The arguments")
    edited: dict[str, Any] = {}
    for name, text in zip(names, texts, strict=True):
        field = before.get(visible(name))
        if field is None:
            raise UsageError(f"The form has no field {line(name)!r}.", code=Code.INVALID_INPUT)
        if _same(text, field.text):
            if field.name in args:
                edited[field.name] = args[field.name]  # as it was recorded, to the last digit and line end
        elif text or field.kind in {"text", "long"}:
            whole = restored(text, field.text)
            words = field.kind in {"text", "long", "word", "file"}
            edited[field.name] = _plain(whole) if words else _json(whole, f"{name}: this")
    return edited


def _field(name: str, args: Mapping[str, Any], schema: Any, *, required: bool) -> Field:
    shape: Mapping[str, Any] = schema if isinstance(schema, dict) else {}
    value, is_given = args.get(name), name in args
    choices: tuple[str, ...] = ("true", "false") if shape.get("type") == "boolean" else ()
    kind = _kind(shape, value, typed=is_given)
    if kind == "text" and shape.get("contentEncoding") == "base64":
        kind = "file"
    if kind in {"text", "long"}:
        text = value if isinstance(value, str) else ""
        kind = "long" if len(text) > _LONG or "\n" in text else kind
    else:
        text = written(value) if is_given and kind != "file" else ""
    if choices and (not is_given or text in choices):
        kind = "choice"
    elif kind == "text" and (words := _words(shape)) and (not is_given or text in words):
        kind, choices = "word", words
    about = shape.get("description", "")
    return Field(
        name=name,
        kind=kind,
        text=text,
        choices=choices if kind in {"choice", "word"} else (),
        about=about if isinstance(about, str) else "",
        required=required,
    )


def _words(shape: Mapping[str, Any]) -> tuple[str, ...]:
    """The texts that a schema allows; none if it allows others too, or one that a form cannot send back as it is."""
    words = shape.get("enum")
    if not isinstance(words, list) or not 0 < len(words) <= _MOST:
        return ()
    fit = all(isinstance(word, str) and word and visible(word) == word == _plain(word).strip() for word in words)
    return tuple(words) if fit else ()


def _kind(shape: Mapping[str, Any], value: Any, *, typed: bool) -> FieldKind:
    sort = shape.get("type")
    if typed:
        text = isinstance(value, str)
        number = isinstance(value, int | float) and not isinstance(value, bool)
    else:
        text, number = sort == "string", sort in {"integer", "number"}
    return "text" if text else "number" if number else "json"


def _json(text: str, what: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise UsageError(f"{what} is not JSON: {line(str(error))}", code=Code.INVALID_INPUT) from error


def _same(text: str, before: str) -> bool:
    """Return whether a field came back as it was shown."""
    return _plain(text) in {_plain(before), _plain(visible(before))}


def _plain(text: str) -> str:
    """With the line ends that a browser sends as one character each."""
    return text.replace("\r\n", "\n")
