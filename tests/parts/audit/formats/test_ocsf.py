"""OCSF events, judged by the schema that OCSF publishes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import ocsf_json_schema
import pytest
from ocsf_json_schema.embedded import OcsfJsonSchemaEmbedded

from remit.parts.audit.formats import ocsf
from remit.parts.audit.formats.account import ExportAccount

SCHEMA = Path(ocsf_json_schema.__file__).parent / "ocsf" / "1.8.0.json"


def events(account: ExportAccount) -> list[dict[str, Any]]:
    """The events of an account."""
    return [json.loads(line) for line in ocsf.write(account)]


@pytest.mark.slow
def test_each_event_fits_the_published_schema(waiting: ExportAccount) -> None:
    published = OcsfJsonSchemaEmbedded(json.loads(SCHEMA.read_bytes()))
    for event in events(waiting):
        schema = published.get_class_schema("api_activity", profiles=event["metadata"]["profiles"])
        jsonschema_rs.validator_for(schema).validate(event)


def test_calls_refusals_questions_and_answers_have_the_words_of_ocsf(waiting: ExportAccount) -> None:
    rows = [(event["api"]["operation"], event["status"], event["action"]) for event in events(waiting)]
    assert ("shop.look", "Success", "Allowed") in rows
    assert ("shop.never", "Failure", "Denied") in rows
    assert ("shop.pay", "Waiting", "Asked") in rows
    assert ("approval.given", "Success", "Denied") in rows
    assert ("says.yaml", "Success", "Allowed") in rows


def test_no_event_has_the_name_of_another(waiting: ExportAccount) -> None:
    names = [event["metadata"]["uid"] for event in events(waiting)]
    assert len(set(names)) == len(names)
