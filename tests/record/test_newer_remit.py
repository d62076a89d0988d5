"""What a newer Remit recorded, and this one has no word for: it is shown as recorded, and never ends anything else."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec
import pytest

from remit import JobEndedError, Remit
from remit.evidence.verify import check
from remit.journal import kinds as k
from remit.journal import writer
from tests.pages.conftest import serving
from tests.record.acts import acts, drive, opened

pytestmark = pytest.mark.slow
NEWER = "NEWER_WORD"
MANY = [{"read": 1}, {"write": 2}, {"fails": 3}, {"asks": 5}, {"denied": 6}, {"model": "says"}, {"model": "rejects"}]
MANY += [{"child": [{"boom": 1}]}, {"signal": 3}, {"sleep": 0}, {"boom": 3}]
PAGES = ("", "/jobs", "/jobs/{job}", "/jobs/{job}/events", "/inbox", "/usage", "/sessions", "/workers", "/policy/calls")
ROUTES = (
    "/v1/jobs",
    "/v1/jobs/{job}",
    "/v1/jobs/{job}/trace",
    "/v1/jobs/{job}/trace.html",
    "/v1/jobs/{job}/verify",
    "/v1/audit?job={job}&today=true",
    "/v1/audit/report",
    "/v1/decisions",
    "/v1/drift",
    "/v1/sessions",
)


def with_codes(payload: k.Payload) -> k.Payload:
    """Every code is one that came later."""
    error = getattr(payload, "error", None)
    if isinstance(error, k.ErrorInfo):
        return msgspec.structs.replace(payload, error=msgspec.structs.replace(error, code=NEWER))
    return msgspec.structs.replace(payload, code=NEWER) if isinstance(payload, k.GateRefused) else payload


def with_classes(payload: k.Payload) -> k.Payload:
    """Every tool that asks nobody has a level and a risk that came later; a question is bound to both."""
    if isinstance(payload, k.ToolInvocationStarted | k.GateRefused) and not payload.confirmation:
        return msgspec.structs.replace(payload, capability_level=7, risk_level=NEWER)
    return payload


def with_effects(payload: k.Payload) -> k.Payload:
    """Every call has an effect of a class that came later, and models stop for new reasons."""
    changes: dict[type[k.Payload], dict[str, Any]] = {
        k.ToolInvocationStarted: {"side_effect": NEWER},
        k.ToolInvocationFinished: {"step_outcome": NEWER, "effect": NEWER, "effect_by": NEWER},
        k.CommandCommitted: {"finish_reason": NEWER},
        k.SessionOpened: {"face": NEWER},
        k.GateRefused: {"side_effect": NEWER},
    }
    return msgspec.structs.replace(payload, **changes.get(type(payload), {}))


async def recorded(folder: Path, change: Callable[[k.Payload], k.Payload], patch: pytest.MonkeyPatch) -> list[str]:
    """A job that has ended and one that waits, recorded by a Remit that has other words."""
    with patch.context() as patched:
        patched.setattr(writer, "encode", lambda payload: k.encode(change(payload)))
        async with opened(folder) as remit:
            jobs = [(await remit.start(acts(acts=list(parts)))).id for parts in (MANY, MANY[:4])]
            await drive(remit, jobs[0], "all")
            await drive(remit, jobs[1], "none")
            session = await remit.service.sessions.open("http", principal="bob", client="x")
            for name in ("x.read", "x.fails", "x.denied"):
                await remit.service.sessions.call(session, name, {"value": 1}, principal="bob")
    return jobs


async def unserved(remit: Remit, jobs: list[str]) -> list[tuple[str, int]]:
    """The pages and routes that do not come."""
    answers = list[tuple[str, int]]()
    async with serving(remit) as server:
        for path in {each.format(job=job) for each in (*PAGES, *ROUTES) for job in jobs}:
            answers.append((path, (await server.get(path or "/", headers={"accept": "*/*"})).status))
    return [(path, status) for path, status in answers if status != HTTPStatus.OK]


@pytest.mark.parametrize("change", [with_codes, with_classes, with_effects])
async def test_it_is_shown_and_goes_on(
    change: Callable[[k.Payload], k.Payload], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = await recorded(tmp_path, change, monkeypatch)
    async with opened(tmp_path) as remit:
        assert await unserved(remit, jobs) == []
        assert (await remit.service.streams.verify()).problems == ()
        with (tmp_path / "package.zip").open("w+b") as file:
            await remit.service.audit.package(jobs[0], file)
        assert check(file.name).state == "whole"
        await drive(remit, jobs[1], "all")
        assert (await remit.service.jobs.row(jobs[1])).state == "completed"


async def test_a_recorded_outcome_is_injected_with_its_own_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (ended, waiting) = await recorded(tmp_path, with_codes, monkeypatch)
    async with opened(tmp_path) as remit:
        told = await remit.service.streams.narrative(waiting)
        assert [step.code for step in told.steps if step.state in {"failed", "blocked"}] == [NEWER]
        assert (await remit.replay(waiting)).verdict == "incomplete"  # as far as it came, all is the same
        with pytest.raises(JobEndedError) as caught:
            await remit.job(ended)
        assert caught.value.code.name == NEWER
