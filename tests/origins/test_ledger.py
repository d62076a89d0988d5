from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.journal.kinds import UntrustedArgument
from remit.origins.arguments import AuthorityValue
from remit.origins.ledger import OriginLedger, OriginSource
from remit.origins.roles import Role

TASK = OriginSource("", "the task")
MAIL = OriginSource("2", "mcp.mail.read")


def judged(role: Role, value: str, *, task: str = "", mail: str = "an e-mail") -> UntrustedArgument | None:
    ledger = OriginLedger()
    ledger.trust(task, TASK)
    if mail:
        ledger.distrust(mail, MAIL)
    return ledger.judge(AuthorityValue("arg", role, value))


def seen(role: Role, value: str, **texts: str) -> str:
    found = judged(role, value, **texts)
    return found.seen if found is not None else "trusted"


def test_without_untrusted_text_nothing_is_said_against_anything() -> None:
    assert judged("iban", "DE89370400440532013000", mail="") is None


def test_a_value_of_the_task_is_trusted_wherever_else_it_stands() -> None:
    assert seen("email", "bob@x.org", task="Write to Bob@x.org.", mail="bob@x.org") == "trusted"


def test_the_finding_shows_where_the_value_was_seen() -> None:
    found = judged("iban", "DE89370400440532013000", mail="Please pay to DE89 3704 0044 0532 0130 00 today.\nThanks")
    assert found == UntrustedArgument(
        path="arg",
        role="iban",
        value="DE89370400440532013000",
        seen="untrusted",
        step="2",
        tool="mcp.mail.read",
        before="Please pay to ",
        span="DE89 3704 0044 0532 0130 00",
        after=" today. Thanks",
    )


def test_a_value_that_nothing_holds_was_seen_nowhere() -> None:
    assert seen("path", "notes.md", task="Do it.") == "nowhere"


@pytest.mark.parametrize(
    "written", ["EVE@evil.org", "eve%40evil.org", "eve\\u0040evil.org", "e\u200bve@evil.org", "eve&#64;evil.org"]
)
def test_a_value_that_was_written_otherwise_is_found_and_not_trusted(written: str) -> None:
    assert seen("email", "eve@evil.org", mail=f"mail {written} now") == "untrusted"


@pytest.mark.parametrize("value", ["readme.md", "README.MD"])
def test_case_counts_in_what_is_trusted_but_for_addresses(value: str) -> None:
    assert seen("path", value, task="Edit README.md") == "nowhere"
    assert seen("email", "BOB@X.org", task="bob@x.org") == "trusted"


def test_a_path_is_as_trusted_as_its_parts() -> None:
    task = "Write start.md in the docs folder, not in /srv."
    assert seen("path", "docs/start.md", task=task) == "trusted"
    assert seen("path", "./docs//start.md", task=task) == "trusted"
    assert seen("path", "docs/other.md", task=task, mail="other.md") == "untrusted"
    assert seen("path", "docs/../start.md", task=task) == "nowhere"
    assert seen("path", "/docs/start.md", task=task) == "nowhere"
    assert seen("path", "/srv/start.md", task=task) == "trusted"


def test_a_url_is_as_trusted_as_its_host_and_every_piece() -> None:
    task = "Post the report to https://api.example.org/v1/reports for team 7."
    assert seen("url", "https://api.example.org/v1/reports", task=task) == "trusted"
    assert seen("url", "https://API.example.org/reports?team=7", task=task) == "trusted"
    assert seen("url", "https://evil.org/v1/reports", task=task, mail="see evil.org") == "untrusted"
    assert seen("url", "https://api.example.org/v1/reports?key=s3cret", task=task) == "nowhere"
    assert seen("url", "https://bob@api.example.org/v1/reports", task=task) == "nowhere"
    assert seen("url", "file://api.example.org/v1", task=task) == "nowhere"
    assert seen("url", "https://example.org/v1", task=task) == "nowhere"


def test_a_command_is_as_trusted_as_its_words() -> None:
    assert seen("command", "pytest -q tests", task="Run pytest with -q on tests.") == "trusted"
    assert seen("command", "pytest -q tests; curl evil.org", task="Run pytest with -q on tests.") == "nowhere"


def test_an_address_is_not_put_together_from_parts() -> None:
    assert seen("email", "bob@evil.org", task="Tell bob and evil.org") == "nowhere"


def test_a_short_value_must_stand_by_itself() -> None:
    assert seen("id", "7", task="Close issue 7.") == "trusted"
    assert seen("id", "7", task="Close issue 17 by 7:30.") == "nowhere"


def test_a_trusted_output_that_repeats_what_the_model_said_adds_no_trust() -> None:
    ledger = OriginLedger()
    ledger.distrust("pay to DE89370400440532013000", MAIL)
    echoed = OriginSource("3", "bank.check", json.dumps({"account": "DE89370400440532013000"}))
    ledger.trust('{"account":"DE89370400440532013000","valid":true}', echoed, is_json=True)
    assert ledger.judge(AuthorityValue("to", "iban", "DE89370400440532013000")) is not None
    ledger.trust('{"account":"DE89370400440532013000"}', OriginSource("4", "bank.own", "{}"), is_json=True)
    assert ledger.judge(AuthorityValue("to", "iban", "DE89370400440532013000")) is None


def test_escapes_in_a_trusted_result_are_read() -> None:
    ledger = OriginLedger()
    ledger.distrust("x", MAIL)
    ledger.trust(json.dumps({"path": 'a "b" \u00fc.md'}), TASK, is_json=True)
    assert ledger.judge(AuthorityValue("path", "path", 'a "b" \u00fc.md')) is None


def test_what_is_shown_is_one_printable_line() -> None:
    found = judged("email", "eve@evil.org", mail="a\x1b[31m\n" * 30 + "eve@evil.org\u202e" + "b\n" * 100)
    assert found is not None
    assert (found.before + found.span + found.after).isprintable()
    assert len(found.before) <= 80


VALUES = st.from_regex(r"[a-z]{3,8}(-[a-z0-9]{1,5}){0,2}", fullmatch=True)


@given(VALUES, st.lists(VALUES, max_size=5), st.lists(VALUES, min_size=1, max_size=5))
def test_a_value_is_trusted_exactly_if_a_trusted_text_holds_it(
    value: str, trusted: list[str], other: list[str]
) -> None:
    found = judged("id", value, task=" ".join(trusted), mail=" ".join(other))
    assert (found is None) == (value in trusted)
    if found is not None:
        assert (found.seen == "untrusted") == (value in other)
