"""The forms in which orders and results come and go: JSON, protobuf, protobuf's text, and the text form of a result."""

from __future__ import annotations

from pathlib import PurePath
from typing import Final, Literal, get_args

from remit.codes import Code
from remit.errors import UsageError
from remit.work.document import write_document
from remit.work.envelope import read_envelope, write_envelope
from remit.work.order import WorkOrder, read_order
from remit.work.protobuf import read_protobuf, write_protobuf
from remit.work.result import WorkResult, read_result

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
