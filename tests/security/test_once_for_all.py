"""Repetitions, retries, overlays and adapters: nothing gains a right, a call or an answer by being asked twice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from remit import Remit, Run, recipe
from remit.codes import Code
from remit.errors import RemitError
from remit.parts.adapters.caller import Governed
from remit.service.options import Options
from remit.settings import load
from remit.trust.claims import claims
from tests.opened import OpenRemit
from tests.security.test_chained import PAID, buy, pay


@recipe("pay_then_fail")
async def pay_then_fail(run: Run, to: str = "ann") -> str:
    """Pay, then fail."""
    await run.call("desk.pay", {"to": to})
    raise ValueError("afterwards")


@pytest.fixture
async def remit(remit_in: OpenRemit) -> AsyncIterator[Remit]:
    PAID.clear()
    allow = [{"id": "pays", "effect": "allow", "tools": ["desk.pay"]}]
    async with remit_in(tools=[pay], recipes=[buy, pay_then_fail], flags={"policy.rules": allow}) as one:
        yield one


async def failed(remit: Remit, options: Options) -> str:
    """A job that has failed."""
    job = await remit.start(pay_then_fail(), options)
    await remit.ended(job.id)
    return job.id


# --- retries


async def test_a_retry_pays_nobody_twice_unless_that_is_said(remit: Remit) -> None:
    job = await failed(remit, Options())
    assert PAID == ["ann"]
    with pytest.raises(RemitError) as refused:
        await remit.service.jobs.retry(job, "1")
    assert refused.value.code is Code.RETRY_REPEATS
    again = await remit.service.jobs.retry(job)
    await remit.ended(again.job)
    assert PAID == ["ann"]
    with pytest.raises(RemitError) as once_more:
        await remit.service.jobs.retry(job)
    assert once_more.value.code is Code.JOB_NOT_RETRYABLE


@pytest.mark.parametrize(
    "limits",
    [
        {"policy": ({"effect": "deny", "tools": ["desk.pay"]},)},
        {"tools": ("fs.read",)},
        {"budget": {"max_steps": 0}},
    ],
    ids=["rules", "tools", "budget"],
)
async def test_a_retry_keeps_every_limit_of_its_job(remit: Remit, limits: dict[str, Any]) -> None:
    try:
        job = await failed(remit, Options(**limits))
    except RemitError:
        return  # such a limit cannot be set
    again = await remit.service.jobs.retry(job, repeat=True)
    await remit.ended(again.job)
    assert PAID == []
    assert (await remit.service.jobs.row(again.job)).state == "failed"


@pytest.mark.parametrize("step", ["1/2", "../1", "", "9", "1\n", "job_1"])
async def test_no_name_of_a_step_leads_a_retry_elsewhere(remit: Remit, step: str) -> None:
    job = await failed(remit, Options())
    try:
        again = await remit.service.jobs.retry(job, step)
    except RemitError:
        return
    await remit.ended(again.job)
    assert PAID == ["ann"]


# --- what a job adds


@pytest.mark.parametrize(
    "rule",
    [
        {"effect": "allow", "tools": ["*"]},
        {"effect": "ALLOW", "tools": ["*"]},
        {"tools": ["*"]},
        {"effect": "ask", "tools": ["*"], "taint": "allow"},
        {"effect": "deny", "tools": ["*"], "default": "no"},
        {"effect": "ask", "tools": ["*"], "approvals": 0},
        {"effect": "ask", "tools": ["*"], "approvals": -1},
        {"effect": "ask", "tools": ["*"], "expires": "1000000d"},
        {"effect": "deny", "tools": ["@nobody"]},
    ],
    ids=str,
)
async def test_a_job_s_own_rules_make_nothing_less_strict(remit: Remit, rule: dict[str, Any]) -> None:
    try:
        job = await remit.start(buy(), Options(policy=(rule,)))
    except RemitError:
        return
    row = await remit.service.jobs.settled([job.id])
    assert PAID == [] or row[0].state == "completed"
    assert rule["effect"] not in {"allow", "ALLOW"}


# --- adapters


async def test_one_identity_is_one_call_whatever_comes_under_it_again(remit: Remit) -> None:
    governed = Governed(remit, ("desk.*",), 0.0)
    first = await governed.call("desk.pay", {"to": "ann"}, "run", "call_1")
    again = await governed.call("desk.pay", {"to": "ann"}, "run", "call_1")
    other = await governed.call("desk.pay", {"to": "eve"}, "run", "call_1")
    assert (first.ok, again.ok, other.code) == (True, True, Code.IDEMPOTENCY_MISMATCH)
    assert PAID == ["ann"]


@pytest.mark.parametrize("identity", ["x" * 10_000, "\x1b[2J", "", "\ud800", "a\nb"])
async def test_no_identifier_of_a_framework_breaks_the_gate(remit: Remit, identity: str) -> None:
    governed = Governed(remit, ("desk.*",), 0.0)
    try:
        outcome = await governed.call("desk.pay", {"to": "ann"}, "run", identity)
    except (RemitError, UnicodeEncodeError):
        assert PAID == []
        return
    assert outcome.ok


# --- a folder that wants to be trusted without being asked about


@pytest.mark.parametrize(
    "text",
    [
        '[confirm]\nproof = "any"', '[confirm]\nallowed_signers = "mine"', "[confirm]\nown = true",
        "[confirm]\nmax_open = 1000000",
        '[mcp]\nfirst_use = "trust"', '[mcp]\nelicitation = "forward"', '[models]\ndefault = "openai:x"',
        '[serve]\ntls_key = "key.pem"', '[[clients]]\nprincipal = "eve"\ntoken = "x"', '[tools]\nunprotected = ["*"]',
        '[tools]\ntrusted_output = ["*"]', '[policy]\ntaint = "allow"', '[sandbox]\nnetwork = ["evil.example"]',
        '[journal]\nkey_file = "/tmp/k"', '[app]\nprincipal = "root"', '[fs]\nroots = ["/"]',
        "[fs]\nsearch_anywhere = true",
        '[[policy.rules]]\neffect = "allow"\ntools = ["*"]', '[[policy.rules]]\ntools = ["*"]',
    ],
)  # fmt: skip
def test_no_setting_that_loosens_anything_counts_without_trust(tmp_path: Path, text: str) -> None:
    (tmp_path / "remit.toml").write_text(text + "\n", encoding="utf-8")
    try:
        settings = load(cwd=tmp_path, env={})
    except RemitError:
        return  # it is no setting
    assert claims(settings, {})
