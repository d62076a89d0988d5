from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest

from remit.operation import (
    ArgumentPlace,
    Body,
    By,
    Declaration,
    Flat,
    FromKey,
    JsonObject,
    WireName,
    operation,
    operations,
)


class Lease(msgspec.Struct):
    owner: str
    token: str


FORM = Flat({"owner": ("lease_owner", str), "token": ("lease_token", str)})


class Desk:
    @operation("desk.view", "GET /v1/desks/{desk}", "read", "Show a desk.")
    async def view(self, desk: str, *, drawer: Annotated[int, WireName("number")] = 1) -> dict[str, Any]:
        """Show one desk.

        Raise NotFoundError.
        """
        return {"desk": desk, "drawer": drawer}

    @operation("desk.book", "POST /v1/desks/{desk}/book", "call", "Book a desk.", body=Body("BookBody", "For whom."))
    async def book(
        self,
        desk: str,
        why: JsonObject,
        *,
        lease: Annotated[Lease | None, FORM] = None,
        by: By = "",
        identifier: Annotated[str, FromKey("book")] = "",
    ) -> None:
        """Book a desk."""

    def local(self) -> None:
        """Do what no request can."""


def test_path_fields_token_and_key_are_told_apart() -> None:
    view, book = operations(Desk)
    assert [one.source for one in view.parameters] == [ArgumentPlace.PATH, ArgumentPlace.FIELD]
    assert [one.source for one in book.parameters] == [
        ArgumentPlace.PATH,
        ArgumentPlace.FIELD,
        ArgumentPlace.FIELD,
        ArgumentPlace.TOKEN,
        ArgumentPlace.KEY,
    ]
    assert (view.key, book.key) == (None, book.parameters[-1])


def test_the_first_paragraph_of_the_docstring_is_the_description() -> None:
    view, _ = operations(Desk)
    assert view.description == "Show one desk."


def test_a_query_takes_the_names_of_requests_and_the_defaults_of_the_method() -> None:
    view, _ = operations(Desk)
    assert msgspec.convert({"number": 3}, view.shape).number == 3
    assert view.shape().number == 1
    assert view.returns == dict[str, Any]


def test_a_body_has_a_name_and_the_fields_of_structs_and_refuses_others() -> None:
    _, book = operations(Desk)
    assert (book.shape.__name__, book.returns) == ("BookBody", None)
    body = msgspec.convert({"why": {"a": 1}, "lease_owner": "me"}, book.shape)
    assert (body.why, body.lease_owner, body.lease_token) == ({"a": 1}, "me", "")
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"why": {}, "by": "ann"}, book.shape)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"why": []}, book.shape)


async def unnamed(_self: Any, text: str) -> None:
    """Send a text."""


async def unplaced(_self: Any) -> None:
    """Send nothing."""


async def shapeless(_self: Any, text: Annotated[str, FORM]) -> None:
    """Send a text as a struct."""


async def answering(_self: Any) -> str:
    """Answer."""
    return ""


WRONG = [
    (unnamed, Declaration("a.b", "POST /v1/a", "read", "A."), "its body has no name"),
    (unplaced, Declaration("a.b", "GET /v1/a/{b}", "read", "A."), "not the parameters of"),
    (shapeless, Declaration("a.b", "POST /v1/a", "read", "A."), "not a struct"),
    (answering, Declaration("a.b", "GET /v1/a", "read", "A.", answer=Lease), "not one field"),
]


@pytest.mark.parametrize(("function", "declaration", "why"), WRONG)
def test_a_declaration_that_does_not_fit_its_method_is_refused(
    function: Any, declaration: Declaration, why: str
) -> None:
    noun = type("Noun", (), {"method": declaration(function)})
    with pytest.raises(TypeError, match=why):
        operations(noun)
