"""The forms in which orders and results come and go: JSON, protobuf, protobuf's text, and the text form of a result.

Orders and results in protobuf, binary and text. The classes are made of the descriptor set when they are needed.

Generated code is bound to versions of the protobuf package, which others in an environment decide; this is not.
"""

from __future__ import annotations

from functools import cache
from pathlib import PurePath
from typing import Any, Final, Literal, TypeVar, get_args

import msgspec

from remit.codes import Code
from remit.errors import UsageError
from remit.parts.work.document import require_size, unreadable, write_document
from remit.parts.work.envelope import read_envelope, write_envelope
from remit.parts.work.order import WorkOrder, read_order
from remit.parts.work.result import WorkResult, read_result

T = TypeVar("T", bound=msgspec.Struct)
BinaryForm = Literal["pb", "textproto"]
UNKNOWN_FIELDS: Final = "unknown_fields"
_PACKAGE: Final = "remit.work.v1"
_DESCRIPTORS: Final = "work.binpb"


def write_protobuf(document: msgspec.Struct, form: BinaryForm) -> bytes:
    """Return an order or a result in protobuf. Raise UsageError (WORK_INVALID) without the extra `work`."""
    kind = _message(type(document).__name__)
    from google.protobuf import json_format, text_format  # noqa: PLC0415 - an extra
    from google.protobuf.message import DecodeError  # noqa: PLC0415 - an extra

    message = json_format.ParseDict(msgspec.to_builtins(document), kind())
    if form == "textproto":
        written: str = text_format.MessageToString(message, as_utf8=True)
        return written.encode()
    try:
        unknown = _unknown(kind.FromString(message.unknown_fields))
    except DecodeError as error:
        raise unreadable(UNKNOWN_FIELDS, Code.WORK_INVALID, error) from error
    message.ClearField(UNKNOWN_FIELDS)
    message.MergeFromString(unknown)
    binary: bytes = message.SerializeToString(deterministic=True)
    return binary


def read_protobuf(data: bytes, form: BinaryForm, kind: type[T], what: str, code: Code) -> T:
    """Read an order or a result. Raise UsageError: with this code, or WORK_INVALID without the extra `work`."""
    require_size(data, what, code)
    message = _message(kind.__name__)()
    from google.protobuf import json_format, text_format  # noqa: PLC0415 - an extra
    from google.protobuf.message import DecodeError  # noqa: PLC0415 - an extra

    try:
        if form == "textproto":
            text_format.Parse(data.decode(), message)
        else:
            message.ParseFromString(data)
        values = json_format.MessageToDict(message, preserving_proto_field_name=True)
        if unknown := message.unknown_fields + _unknown(message):
            values[UNKNOWN_FIELDS] = unknown
        return msgspec.convert(values, kind)
    except (ValueError, RecursionError, DecodeError, text_format.ParseError, json_format.Error) as error:
        raise unreadable(what, code, error) from error


def _unknown(message: Any) -> bytes:
    """Return the encoding of the fields that a message does not know, and take all others from it."""
    _strip(message)
    unknown: bytes = message.SerializeToString()
    return unknown


def _strip(message: Any) -> None:
    from google.protobuf.message import Message  # noqa: PLC0415 - an extra

    for field, value in message.ListFields():
        inner = isinstance(value, Message)  # a list of messages is none
        if inner:
            _strip(value)
        if not (inner and value.ByteSize()):
            message.ClearField(field.name)


@cache
def _message(name: str) -> Any:
    """Return the class of a message. Raise UsageError (WORK_INVALID) without the extra `work`."""
    from importlib.resources import files  # noqa: PLC0415 - for who has protobuf

    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        remedy = "Install the extra: `pip install 'remit[work]'`; JSON and text need none."
        raise UsageError("protobuf needs a package", code=Code.WORK_INVALID, remedy=remedy) from error
    pool = descriptor_pool.DescriptorPool()
    described = descriptor_pb2.FileDescriptorSet.FromString(files(__package__).joinpath(_DESCRIPTORS).read_bytes())
    for file in described.file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


Form = Literal["json", "pb", "textproto", "txt"]
"""As the name of a file ends: `pb` and `textproto` need the extra `work`; `txt` is for results alone."""
FORMS: Final[tuple[Form, ...]] = get_args(Form)


def form_of(name: str) -> Form:
    """Return the form of a file by its name. Raise UsageError (WORK_INVALID)."""
    ending = PurePath(name).suffix.removeprefix(".").lower()
    form = next((form for form in FORMS if form == ending), None)
    if form is None:
        remedy = f"Name it *.{', *.'.join(FORMS)}."
        raise UsageError(f"{name!r} does not say its form", code=Code.WORK_INVALID, remedy=remedy)
    return form


def read_result_in(form: Form, data: bytes) -> WorkResult:
    """Read a result. Raise UsageError: output_unparseable, or WORK_INVALID without the extra that a form needs."""
    if form == "json":
        return read_result(data)
    if form == "txt":
        return read_envelope(data)
    result = read_protobuf(data, form, WorkResult, "work result", Code.output_unparseable).tidied()
    result.check()
    return result


def read_order_in(form: Form, data: bytes) -> WorkOrder:
    """Read an order. Raise UsageError (WORK_INVALID)."""
    if form == "json":
        return read_order(data)
    if form == "txt":
        raise UsageError("an order has no text form", code=Code.WORK_INVALID, remedy="Write textproto.")
    order = read_protobuf(data, form, WorkOrder, "work order", Code.WORK_INVALID)
    order.check()
    return order


def write_in(form: Form, document: WorkOrder | WorkResult) -> bytes:
    """Return an order or a result in a form. Raise UsageError (WORK_INVALID)."""
    if form == "json":
        return write_document(document)
    if form == "txt":
        if isinstance(document, WorkResult):
            return write_envelope(document)
        raise UsageError("an order has no text form", code=Code.WORK_INVALID, remedy="Write textproto.")
    return write_protobuf(document, form)
