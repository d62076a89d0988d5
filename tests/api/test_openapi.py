"""The OpenAPI document: complete, and true to the table of routes."""

from __future__ import annotations

import re

import msgspec
import pytest

from remit.api.openapi import openapi
from remit.api.route import Route
from remit.api.table import ROUTES
from remit.codes import Code
from tests.api.golden import document

DOCUMENT = openapi(ROUTES)


def test_every_route_is_there_once_under_a_name_of_its_own() -> None:
    names = [operation["operationId"] for path in DOCUMENT["paths"].values() for operation in path.values()]
    assert sorted(names) == sorted(route.name for route in ROUTES)
    assert len(set(names)) == len(names)


def test_every_reference_leads_somewhere() -> None:
    text = str(DOCUMENT)
    assert set(re.findall(r"#/components/schemas/([\w.]+)", text)) <= set(DOCUMENT["components"]["schemas"])


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_every_code_of_a_route_is_documented_under_its_status(route: Route) -> None:
    responses = DOCUMENT["paths"][route.path][route.method.lower()]["responses"]
    for code in route.codes:
        assert code.name in responses[str(code.http)]["description"]
        assert code.status in {"error", "blocked", "failed", "pending"}


@pytest.mark.parametrize(
    "route", [route for route in ROUTES if route.example is not msgspec.UNSET], ids=lambda route: route.name
)
def test_an_example_can_be_decoded(route: Route) -> None:
    assert msgspec.convert(route.example, route.body)


def test_the_codes_of_a_problem_are_those_of_the_table() -> None:
    assert DOCUMENT["components"]["schemas"]["Problem"]["properties"]["error_code"]["enum"] == sorted(
        code.name for code in Code
    )


def test_routes_operations_and_schemas_are_those_that_were_promised() -> None:
    promised = document.FILE.read_text(encoding="utf-8").splitlines()
    assert document.lines() == promised, "If the change is meant: python -m tests.api.golden.document"
