"""The traps of formats of evidence, each of which an exporter fell into somewhere."""

from __future__ import annotations

import base64
import json
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import pytest

from remit import Options
from remit.canonical import canonical
from remit.journal import kinds as k
from remit.journal.erasure import erase
from remit.parts.audit.formats import ael, ael_check, ael_record, agent_action, catalog, intoto, ocsf, otlp, receipts
from remit.parts.audit.formats.account import AccountEntry, Bundle, ExportAccount, FormError, pack
from remit.parts.audit.formats.keys import PublicKey
from remit.parts.audit.formats.table import DECISIONS, ROWS, row_of
from remit.record.walk import root_of
from tests.opened import OpenRemit
from tests.parts.audit.formats.errands import account_of, ran, remit_of, signed
from tests.parts.audit.formats.test_catalog import written


def lines_of(account: ExportAccount, folder: Path, run: str) -> list[dict[str, Any]]:
    """The records of a run of AEL."""
    files = ael.write(account, signed(folder)[0])
    rows = files[f"recorders/{account.scope.replace('/', '-')}-{run}.jsonl"].splitlines()
    return [json.loads(base64.urlsafe_b64decode(row.partition(b".")[0] + b"===")) for row in rows]


def every_format(account: ExportAccount, folder: Path) -> bytes:
    """What is written in all formats together, with what is encoded in it decoded."""
    by, _ = signed(folder)
    whole = b"".join(
        [
            *(write(account, by) for name, write in catalog.SIGNED.items() if name not in _ZIPS),
            *(write(account) for write in catalog.UNSIGNED.values()),
        ]
    )
    whole += b"".join(canonical(row) for run in ("decisions", "events") for row in lines_of(account, folder, run))
    return whole + b"".join(intoto.write(account, by).values())


_ZIPS = ("ael", "in-toto")


def test_each_decision_derives_from_its_inputs_and_outcomes_stand_elsewhere(
    waiting: ExportAccount, tmp_path: Path
) -> None:
    _, *decisions = lines_of(waiting, tmp_path, "decisions")
    for row in decisions:
        assert ael_record.derive(ael_record.POLICY, row["decision"]["inputs"]) == row["decision"]["verdict"]
        assert all(isinstance(value, str | bool | int) for value in row["decision"]["inputs"].values())
    verdicts = [(row["event"]["class"], row["decision"]["verdict"]) for row in decisions]
    assert {*verdicts} == {
        ("model.call", "allow"), ("tool.call", "allow"), ("tool.refused", "block"), ("approval.asked", "defer"),
        ("approval.given", "allow"), ("approval.given", "block"),
    }  # fmt: skip
    assert not any("decision" in row for row in lines_of(waiting, tmp_path, "events"))


def test_a_run_is_closed_only_if_its_job_has_ended(ended: ExportAccount, tmp_path: Path) -> None:
    assert [lines_of(ended, tmp_path, run)[-1]["type"] for run in ("decisions", "events")] == ["close", "close"]


def test_a_run_of_a_waiting_job_stays_open(waiting: ExportAccount, tmp_path: Path) -> None:
    assert {lines_of(waiting, tmp_path, run)[-1]["type"] for run in ("decisions", "events")} == {"activity"}


def test_no_heartbeat_is_made_up_and_no_level_is_claimed(ended: ExportAccount, tmp_path: Path) -> None:
    opened, *_ = rows = lines_of(ended, tmp_path, "events")
    assert (opened["hmax"], {row["type"] for row in rows}) == (0, {"open", "activity", "close"})
    manifest = ael.write(ended, signed(tmp_path)[0])["manifest.json"]
    assert b"claimed_rung" not in manifest


def test_attempts_at_one_call_are_told_apart(ended: ExportAccount, tmp_path: Path) -> None:
    calls = [row for row in lines_of(ended, tmp_path, "decisions")[1:-1] if row["event"]["class"] == "tool.call"]
    assert all(row["ext"]["remit"].keys() >= {"attempt", "idempotency_key"} for row in calls)
    assert len({row["event"]["id"] for row in calls}) == len(calls)


@pytest.mark.parametrize("place", [3, -1])
def test_a_time_that_goes_back_is_lifted_and_says_so(ended: ExportAccount, tmp_path: Path, place: int) -> None:
    opening = ended.entries[0]
    ended.entries[place] = ended.entries[place]._replace(at=opening.at - 5_000_000)
    lifted = []
    for run in ("decisions", "events"):
        rows = lines_of(ended, tmp_path, run)
        assert [row["ts"] for row in rows] == sorted(row["ts"] for row in rows)
        lifted += [row for row in rows if "at" in row.get("ext", {}).get("remit", {})]
    assert lifted
    assert all(row["ext"]["remit"]["at"] < row["ts"] for row in lifted)


async def test_an_erased_value_and_a_missing_record_differ(remit_in: OpenRemit, tmp_path: Path) -> None:
    job = await ran(remit_in, tmp_path, options=Options(subject="customer-7"))
    before = await account_of(remit_in, tmp_path, job)
    async with remit_of(remit_in, tmp_path, work=False) as remit:
        await erase(remit.runtime.journal, "customer-7", by="ann")
    after = await account_of(remit_in, tmp_path, job)
    states = {row["ext"]["remit"].get("arguments") for row in lines_of(after, tmp_path, "decisions")[1:-1]}
    assert "erased" in states
    assert "kept" not in states
    assert [entry.place for entry in before.entries] == [
        entry.place for entry in after.entries if not entry.stream.startswith("subject/")
    ]
    assert any(row["event"]["class"] == "payload.erased" for row in lines_of(after, tmp_path, "events")[1:-1])


async def test_values_of_a_subject_cannot_be_guessed_from_digests(remit_in: OpenRemit, tmp_path: Path) -> None:
    job = await ran(remit_in, tmp_path, options=Options(subject="customer-7"))
    account = await account_of(remit_in, tmp_path, job)
    hashes = {getattr(entry.payload, "arguments_hash", "") for entry in account.entries} - {""}
    shown = {getattr(entry.payload, "digest", "") for entry in account.entries} - {""}
    assert hashes
    assert shown
    told = every_format(account, tmp_path)
    assert not [one for one in hashes | shown if one.removeprefix("sha256:").encode() in told]


async def test_no_value_stands_in_any_format(remit_in: OpenRemit, tmp_path: Path) -> None:
    account = await account_of(remit_in, tmp_path, await ran(remit_in, tmp_path))
    told = every_format(account, tmp_path)
    assert not [text for text in (b"milk", b"paid 500", b'"cents"') if text in told]


def test_a_key_in_the_file_is_never_used(ended: ExportAccount, tmp_path: Path) -> None:
    by, known = signed(tmp_path)
    receipt = json.loads(next(iter(receipts.write(ended, by))))
    receipt["signature"]["kid"] = receipt["payload"]["issuer_id"] = "another"
    with pytest.raises(FormError) as raised:
        receipts.check(canonical(receipt), known)
    assert raised.value.answer.code == "unknown_kid"


@pytest.mark.parametrize(
    ("begins", "ends", "code"),
    [
        ("{}", None, None),
        (None, "{}", "key_outside_validity_window"),
        ("9999-01-01T00:00:00Z", None, "key_outside_validity_window"),
        (None, "9999-01-01T00:00:00Z", None),
        ("yesterday", None, "window_not_applicable"),
    ],
)
def test_the_start_of_a_window_is_in_it_and_its_end_is_not(
    ended: ExportAccount, tmp_path: Path, begins: str | None, ends: str | None, code: str | None
) -> None:
    by, _ = signed(tmp_path)
    line = next(iter(receipts.write(ended, by)))
    issued = json.loads(line)["payload"]["issued_at"]
    window = [issued if bound == "{}" else bound for bound in (begins, ends)]
    try:
        found = receipts.check(line, {by.name: PublicKey(by.public, *window)}).code
    except FormError as error:
        found = error.answer.code
    assert found == code


def test_a_cut_tail_is_found_by_its_checkpoint(ended: ExportAccount, tmp_path: Path) -> None:
    by, known = signed(tmp_path)
    files = intoto.write(ended, by)
    records, statements = (files[name].splitlines(keepends=True) for name in (intoto.RECORDS, intoto.ATTESTATIONS))
    with pytest.raises(FormError) as raised:
        agent_action.check(b"".join(statements[:-1]), b"".join(records[:-1]), known)
    assert raised.value.answer.code == "open-tail"


def test_a_cut_tail_of_receipts_or_of_ael_is_never_valid(ended: ExportAccount, tmp_path: Path) -> None:
    by, known = signed(tmp_path)
    lines = list(receipts.write(ended, by))
    files = ael.write(ended, by)
    name = next(name for name in files if name.endswith("-events.jsonl"))
    rows = files[name].splitlines(keepends=True)
    for end in range(2, max(len(lines), len(rows))):
        with pytest.raises(FormError) as raised:
            receipts.check(b"".join(lines[: min(end, len(lines) - 1)]), known)
        assert raised.value.answer.code == "open-tail", end
        cut = BytesIO(pack({**files, name: b"".join(rows[: min(end, len(rows) - 1)])}))
        with pytest.raises(FormError) as raised:
            ael_check.check(Bundle(cut), known)
        assert raised.value.answer.code == "j", end


def test_the_manifest_of_ael_is_the_operators_word_only(ended: ExportAccount, tmp_path: Path) -> None:
    place = written(ended, "ael", tmp_path)
    by, known = signed(tmp_path)
    files = ael.write(ended, by)
    manifest = json.loads(files["manifest.json"])
    manifest["recorders"][0]["key"] = "00" * 32
    folder = tmp_path / "forged"
    for name, data in {**files, "manifest.json": canonical(manifest)}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    answer = catalog.check(folder, tmp_path / "keys")
    assert answer is not None
    assert (answer.code, len(known), place.exists()) == ("l", 1, True)


@pytest.mark.parametrize(
    ("payload", "outcome"),
    [
        (
            k.ToolInvocationFinished(invocation_id="", step="1", outcome="failure", step_outcome="uncertain"),
            "tool.unknown",
        ),
        (k.ToolInvocationFinished(invocation_id="", step="1", outcome="success"), "tool.result"),
    ],
)
def test_an_unknown_outcome_is_a_failure_nowhere_and_a_success_nowhere(
    ended: ExportAccount, tmp_path: Path, payload: k.ToolInvocationFinished, outcome: str
) -> None:
    (started, *_) = (entry for entry in ended.entries if isinstance(entry.payload, k.ToolInvocationStarted))
    assert isinstance(started.payload, k.ToolInvocationStarted)
    finished = msgspec.structs.replace(payload, invocation_id=started.payload.invocation_id)
    row = row_of(payload.KIND, started.stream, finished)
    ended.outcomes[started.stream, started.payload.invocation_id] = started._replace(payload=finished, row=row)
    assert row.name == outcome
    known = outcome == "tool.result"
    record = json.loads(intoto.write(ended, signed(tmp_path)[0])[intoto.RECORDS].splitlines()[0])
    assert (record["success"], record.get("errorClass")) == ((True, None) if known else (False, "OUTCOME_UNKNOWN"))
    spans = json.loads(otlp.write(ended))["resourceSpans"][0]["scopeSpans"][0]["spans"]
    said = [row["value"] for span in spans for row in span["attributes"] if row["key"] == "remit.outcome"]
    assert ({"stringValue": "unknown"} in said) is not known
    states = [json.loads(line)["status"] for line in ocsf.write(ended)]
    assert ("Unknown" in states) is not known


def test_rows_of_decisions_all_say_what_was_decided() -> None:
    decided = {row.kind for row in ROWS if row.run == DECISIONS}
    assert decided == {
        "tool_invocation_started", "gate_refused", "confirmation_requested", "confirmation_decided", "command_started"
    }  # fmt: skip


def test_a_kind_of_a_newer_remit_is_told_and_not_lost(ended: ExportAccount, tmp_path: Path) -> None:
    stream = ended.scope
    row = row_of("weather_recorded", stream, None)
    entry = AccountEntry(stream, 99, "weather_recorded", ended.entries[-1].at, "00", None, row)
    ended.entries.append(entry)
    assert entry.root == root_of(stream)
    classes = [one["event"]["class"] for one in lines_of(ended, tmp_path, "events")[1:-1]]
    assert "remit.weather_recorded" in classes
