"""Approvals are checked after the fact: by the verifier's own list of signers, whatever the process that ran took."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from remit import Remit
from remit.codes import Code
from remit.journal.event import link, root
from remit.record.views import VerifyReport
from tests.opened import OpenRemit
from tests.security.test_approvers import asked, flags, key, written

Keys = dict[str, Path]


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    """Keys of bob, carol and mallory, of which bob's and carol's may sign."""
    found = {name: key(tmp_path, name) for name in ("bob", "carol", "mallory")}
    allow(tmp_path, *(f"{name} {public(found[name])}" for name in ("bob", "carol")))
    return found


def allow(folder: Path, *lines: str) -> None:
    (folder / "allowed").write_text("".join(lines), encoding="utf-8")


def public(private: Path) -> str:
    return private.with_suffix(".pub").read_text(encoding="utf-8")


async def ran(remit_in: OpenRemit, tmp_path: Path, sign: Path) -> None:
    """A call that bob approved with a signature, and that ran."""
    async with remit_in(flags=flags(tmp_path, "signed")) as remit:
        question = await asked(remit)
        await remit.service.confirmations.decide(question, "approve", by="bob", sign=sign)
        assert await written(remit, tmp_path)


async def verified(remit_in: OpenRemit, tmp_path: Path, proof: str = "signed", **more: str) -> VerifyReport:
    async with remit_in(flags={**flags(tmp_path, proof), **more}) as remit:
        return await remit.service.streams.verify()


def rechain(path: Path, old: bytes, new: bytes) -> None:
    """Change the events of the question, and chain them again as somebody would who knows how."""
    with closing(sqlite3.connect(path)) as db:
        number, stream = db.execute("SELECT id, stream FROM heads WHERE kind = 'confirmation'").fetchone()
        chained, changed = root(stream), 0
        for place, seq, kind, at, data in db.execute(
            "SELECT position, seq, kind, at, data FROM events WHERE stream = ? ORDER BY seq", (number,)
        ).fetchall():
            rewritten = data.replace(old, new)
            changed += rewritten != data
            chained = link(chained, seq, at, kind, rewritten)
            db.execute("UPDATE events SET data = ?, hash = ? WHERE position = ?", (rewritten, chained, place))
        db.execute("UPDATE heads SET hash = ? WHERE id = ?", (chained, number))
        db.commit()
    assert changed


async def test_signatures_that_hold_are_counted(remit_in: OpenRemit, tmp_path: Path, keys: Keys) -> None:
    await ran(remit_in, tmp_path, keys["bob"])
    report = await verified(remit_in, tmp_path)
    assert (report.ok, report.signed, report.unchecked) == (True, 1, 0)


async def test_without_a_list_of_signers_it_says_what_it_cannot_check(
    remit_in: OpenRemit, tmp_path: Path, keys: Keys
) -> None:
    await ran(remit_in, tmp_path, keys["bob"])
    report = await verified(remit_in, tmp_path, "any", **{"confirm.allowed_signers": ""})
    assert (report.ok, report.signed, report.unchecked) == (True, 0, 1)


async def test_a_signer_whom_the_verifier_does_not_know_proves_nothing(
    remit_in: OpenRemit, tmp_path: Path, keys: Keys
) -> None:  # an agent that named an allowed_signers of its own to the process that ran the call
    allow(tmp_path, f"bob {public(keys['mallory'])}")
    await ran(remit_in, tmp_path, keys["mallory"])
    allow(tmp_path, f"bob {public(keys['bob'])}")
    assert set((await verified(remit_in, tmp_path)).codes) == {
        Code.SIGNATURE_INVALID.name,
        Code.APPROVAL_UNPROVEN.name,
    }
    assert (await verified(remit_in, tmp_path, "any")).codes == (Code.SIGNATURE_INVALID.name,)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"content":"x"', b'"content":"y"'),
        (b'"out.txt"', b'"eve.txt"'),
        (b'"principal":"alice"', b'"principal":"eve"'),
        (b'"tool_name":"fs.write"', b'"tool_name":"fs.edit"'),
    ],
)
async def test_a_question_that_is_rewritten_is_not_the_one_that_was_approved(
    remit_in: OpenRemit, tmp_path: Path, keys: Keys, old: bytes, new: bytes
) -> None:
    await ran(remit_in, tmp_path, keys["bob"])
    rechain(tmp_path / "journal.db", old, new)
    assert Code.APPROVAL_UNPROVEN.name in (await verified(remit_in, tmp_path)).codes


async def test_another_name_does_not_fit_the_signature(remit_in: OpenRemit, tmp_path: Path, keys: Keys) -> None:
    await ran(remit_in, tmp_path, keys["bob"])
    rechain(tmp_path / "journal.db", b'"by":"bob"', b'"by":"carol"')
    assert Code.SIGNATURE_INVALID.name in (await verified(remit_in, tmp_path)).codes


async def test_an_approval_without_a_signature_is_named_where_only_signed_ones_count(
    remit_in: OpenRemit, tmp_path: Path, keys: Keys
) -> None:
    async with remit_in(flags=flags(tmp_path, "any")) as remit:
        await remit.service.confirmations.decide(await asked(remit), "approve", by="bob")
        assert await written(remit, tmp_path)
    assert (await verified(remit_in, tmp_path)).codes == (Code.APPROVAL_UNPROVEN.name,)
    assert (await verified(remit_in, tmp_path, "any")).ok


async def test_a_key_that_was_valid_then_holds_and_one_that_was_not_does_not(
    remit_in: OpenRemit, tmp_path: Path, keys: Keys
) -> None:
    await ran(remit_in, tmp_path, keys["bob"])
    allow(tmp_path, f'bob valid-after="20200101",valid-before="29990101" {public(keys["bob"])}')
    assert (await verified(remit_in, tmp_path)).signed == 1
    allow(tmp_path, f'bob valid-before="20200101" {public(keys["bob"])}')
    assert Code.SIGNATURE_INVALID.name in (await verified(remit_in, tmp_path)).codes


async def test_what_an_open_question_was_answered_is_checked_too(
    remit_in: OpenRemit, tmp_path: Path, keys: Keys
) -> None:
    async with remit_in(flags=flags(tmp_path, "signed", approvals=2)) as remit:
        question = await asked(remit)
        await remit.service.confirmations.decide(question, "approve", by="bob", sign=keys["bob"])
        report = await remit.service.streams.verify()
        assert (report.ok, report.signed) == (True, 1)


async def test_the_check_stops_at_nothing_else(remit_in: OpenRemit, tmp_path: Path, keys: Keys) -> None:
    """Calls that nobody was asked about, and questions without an answer, need no proof."""

    async def look(remit: Remit) -> None:
        await remit.call("fs.list", {"path": "."})
        await asked(remit)

    async with remit_in(flags=flags(tmp_path, "signed")) as remit:
        await look(remit)
        assert (await remit.service.streams.verify()).ok
