"""Spans arrive as the journal grows: each once, in the trace of the client, without values, whichever end breaks."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from remit import JobEndedError, Remit, Run, recipe
from remit.clock import SystemClock
from remit.parts.audit.collector import encode
from remit.parts.audit.formats import otlp
from remit.parts.audit.formats.account import ExportAccount
from remit.parts.audit.package import write_package
from remit.parts.audit.telemetry.exporter import FOLD
from remit.parts.audit.telemetry.spans import KINDS, Spans
from remit.parts.audit.telemetry.wiring import STREAM
from remit.settings import load
from tests.jumping import JumpingClock
from tests.opened import OpenRemit
from tests.parts.audit.formats.errands import FLAGS, GIVEN, errands, remit_of, subject
from tests.parts.audit.receiver import Collector, receiver

__all__ = ["receiver"]
_IDLE_S = 1.5
"""Longer than spans are gathered for: then the process waits for news of its journal."""
SPANS = 11
"""Of the errands, once they ended."""


@asynccontextmanager
async def sending(remit: Remit) -> AsyncIterator[Remit]:
    """Send spans beside an open Remit."""
    async with remit, remit.sending():
        while await remit.runtime.journal.head(STREAM) is None:
            await remit.clock.sleep(0.02)
        yield remit


async def run_errands(remit: Remit, **options: Any) -> str:
    """The job of errands, with its first payment approved and its second one denied, once it ended."""
    answers: list[Literal["approve", "deny"]] = ["approve", "deny"]
    job = await remit.start(errands(), **options)
    async for question in remit.questions(job):
        await remit.service.confirmations.decide(question.confirmation, answers.pop(0), by="carol")
    await job
    return str(job.id)


def opened(remit_in: OpenRemit, folder: Path, url: str, *, values: bool = False, **given: Any) -> Remit:
    return remit_of(remit_in, folder, flags={"telemetry.otlp_url": url, "telemetry.values": values}, **given)


async def until(collector: Collector, count: int) -> None:
    """Wait for spans."""
    await asyncio.to_thread(collector.until, lambda one: len(one.spans) >= count)


async def until_kept(remit: Remit, position: int = 0) -> int:
    """Wait until a position beyond this one is kept; return it."""
    while True:
        folds = await remit.runtime.journal.folds.read(FOLD)
        if folds and folds[0].position > position:
            return folds[0].position
        await remit.clock.sleep(0.02)


def decoded(spans: Iterable[dict[str, Any]]) -> dict[tuple[bytes, bytes], Any]:
    """Spans as a collector reads them, but for digests of values, which only a package may tell."""
    request = ExportTraceServiceRequest.FromString(encode(otlp.request(list(spans))))
    return {(span.trace_id, span.span_id): shown(span) for span in request.resource_spans[0].scope_spans[0].spans}


def shown(span: Any) -> str:
    told = sorted(str(row) for row in span.attributes if row.key != "remit.arguments.hash")
    times = (span.start_time_unix_nano, span.end_time_unix_nano)
    return f"{span.name} {span.parent_span_id!r} {span.kind} {span.status} {times} {told}"


async def exported(remit: Remit, job: str) -> dict[tuple[bytes, bytes], Any]:
    """The spans that `remit export --format otlp` gives of a job."""
    package = BytesIO()
    await write_package(remit.runtime.journal, job, package)
    return decoded(json.loads(otlp.write(ExportAccount(package)))["resourceSpans"][0]["scopeSpans"][0]["spans"])


@pytest.mark.slow
async def test_what_arrives_is_what_an_export_gives_later(
    remit_in: OpenRemit,
    tmp_path: Path,
    receiver: Collector,
) -> None:
    async with sending(opened(remit_in, tmp_path, receiver.url)) as remit:
        job = await run_errands(remit)
        await until(receiver, SPANS)
        assert {key: shown(span) for key, span in receiver.spans.items()} == await exported(remit, job)
    assert max(Counter(receiver.came).values()) == 1
    root = receiver.attributes("invoke_agent errands")
    assert (root["remit.outcome"], root["user.id"]) == ("completed", "alice")
    told = str(receiver.spans.values())
    assert "milk" not in told
    assert "arguments.hash" not in told


@pytest.mark.slow
async def test_values_come_along_if_a_setting_says_so_and_never_those_about_a_subject(
    remit_in: OpenRemit,
    tmp_path: Path,
    receiver: Collector,
) -> None:
    async with sending(opened(remit_in, tmp_path, receiver.url, values=True)) as remit:
        session = await remit.service.sessions.open("mcp", principal="ann")
        for text in ("milk", "sk-" + "a1B2" * 12):
            await remit.service.sessions.call(session, "shop.look", {"text": text})
        await until(receiver, 3)
        looks = [str(span) for span in receiver.spans.values() if span.name == "execute_tool shop.look"]
        assert sum("milk" in text for text in looks) == 1
        assert not any("a1B2" in text for text in looks)
        await run_errands(remit, options=subject())
        await until(receiver, 3 + SPANS)
    errand = [str(span) for span in receiver.spans.values() if "job/" in str(span)]
    assert len(errand) == SPANS
    assert not any("gen_ai.tool.call.arguments" in text or "gen_ai.tool.call.result" in text for text in errand)


@pytest.mark.slow
async def test_a_call_over_mcp_is_below_the_span_of_its_client(
    remit_in: OpenRemit,
    tmp_path: Path,
    receiver: Collector,
) -> None:
    trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
    client = {"traceparent": f"00-{trace}-{span}-01"}
    async with sending(opened(remit_in, tmp_path, receiver.url)) as remit:
        session = await remit.service.sessions.open("mcp", principal="ann")
        await remit.service.sessions.call(session, "shop.look", {"text": "a"}, trace_id=trace, client=client)
        await until(receiver, 2)
    (call,) = (one for one in receiver.spans.values() if one.name == "execute_tool shop.look")
    assert (call.trace_id.hex(), call.parent_span_id.hex()) == (trace, span)
    assert receiver.attributes("execute_tool shop.look")["user.id"] == "ann"


@pytest.mark.slow
async def test_a_collector_that_is_away_gets_everything_once_it_is_back(remit_in: OpenRemit, tmp_path: Path) -> None:
    away = Collector()
    away.server.server_close()
    async with sending(opened(remit_in, tmp_path, away.url)) as remit:
        await run_errands(remit)
        metrics = remit.runtime.services.metrics
        failures = metrics.counter("telemetry_failures_total", "Requests with spans that failed.")
        while not failures.value():
            await remit.clock.sleep(0.02)
        state = (await remit.service.health.ready()).optional["telemetry"]
        assert not state.ready
        assert "takes no spans" in state.detail
        back = Collector(away.server.server_port)
        back.answers = [(503, {"Retry-After": "0"})]
        back.start()
        try:
            await until(back, SPANS)
            await until_kept(remit)
            assert (await remit.service.health.ready()).optional["telemetry"].ready
        finally:
            back.stop()
    assert max(Counter(back.came).values()) == 1
    assert len(back.spans) == SPANS


@pytest.mark.slow
async def test_a_process_that_has_sent_everything_ends_without_waiting(
    remit_in: OpenRemit, tmp_path: Path, receiver: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    async with sending(opened(remit_in, tmp_path, receiver.url)) as remit:
        await run_errands(remit)
        await until(receiver, SPANS)
        await remit.clock.sleep(_IDLE_S)
    assert "did not answer" not in caplog.text


@pytest.mark.slow
async def test_spans_that_a_collector_refuses_are_counted_and_hold_nothing_up(
    remit_in: OpenRemit,
    tmp_path: Path,
    receiver: Collector,
) -> None:
    receiver.answers = [(400, {})]
    async with sending(opened(remit_in, tmp_path, receiver.url)) as remit:
        session = await remit.service.sessions.open("mcp", principal="ann")
        await remit.service.sessions.call(session, "shop.look", {"text": "a"})
        position = await until_kept(remit)
        assert receiver.spans == {}
        await remit.service.sessions.call(session, "shop.look", {"text": "b"})
        await until(receiver, 1)
        await until_kept(remit, position)
        family = next(one for one in await remit.service.health.metrics() if one.name == "telemetry_spans_total")
    counts = {dict(sample.labels)["answer"]: sample.value for sample in family.samples}
    assert counts["refused"] >= 1
    assert counts["taken"] == len(receiver.spans)


@pytest.mark.slow
async def test_headers_come_from_the_environment_and_follow_no_redirection(
    remit_in: OpenRemit,
    tmp_path: Path,
    receiver: Collector,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SPANS_TOKEN", "s3cret")
    other = Collector()
    other.start()
    receiver.answers = [(302, {"Location": f"{other.url}/v1/traces"})]
    flags = {"telemetry.otlp_url": receiver.url, "telemetry.headers": {"authorization": "Bearer ${SPANS_TOKEN}"}}
    try:
        async with sending(remit_of(remit_in, tmp_path, flags=flags)) as remit:
            await remit.service.sessions.open("mcp", principal="ann")
            session = await remit.service.sessions.open("mcp", principal="ann")
            await remit.service.sessions.call(session, "shop.look", {"text": "a"})
            await until(receiver, 2)
    finally:
        other.stop()
    assert [row["authorization"] for row in receiver.headers] == ["Bearer s3cret"] * len(receiver.headers)
    assert other.headers == []


async def test_what_began_before_this_process_looked_is_read_again(remit_in: OpenRemit, tmp_path: Path) -> None:
    async with remit_of(remit_in, tmp_path) as remit:
        job = await run_errands(remit)
        journal = remit.runtime.journal
        page = await journal.scan(0, KINDS)
        every = [span for placed in page.events for span in await Spans(journal, values=False).of(placed.event)]
        assert decoded(every) == await exported(remit, job)


@recipe("breaks")
async def breaks(run: Run) -> None:
    """Look, and fail."""
    await run.call("shop.look", {"text": "a"})
    raise ValueError("the bank says no")


async def test_a_job_that_failed_says_so_and_a_call_without_an_outcome_is_unknown(remit_in: OpenRemit) -> None:
    async with remit_in(recipes=[breaks], tools=GIVEN["tools"]) as remit:
        with pytest.raises(JobEndedError):
            await remit.run(breaks())
        journal = remit.runtime.journal
        page = await journal.scan(0, [kind for kind in KINDS if kind != "tool_invocation_finished"])
        spans = Spans(journal, values=False)
        root, call = [span for placed in page.events for span in await spans.of(placed.event)]
    assert (root["name"], root["status"]["code"]) == ("invoke_agent breaks", 2)
    assert call["name"] == "execute_tool shop.look"
    assert {"key": "remit.outcome", "value": {"stringValue": "unknown"}} in call["attributes"]


@pytest.mark.slow
async def test_what_ended_before_there_was_a_collector_is_left_to_the_export(
    remit_in: OpenRemit,
    tmp_path: Path,
    receiver: Collector,
) -> None:
    async with remit_of(remit_in, tmp_path) as remit:
        await run_errands(remit)
    async with sending(opened(remit_in, tmp_path, receiver.url)) as remit:
        session = await remit.service.sessions.open("mcp", principal="ann")
        await remit.service.sessions.call(session, "shop.look", {"text": "a"})
        await until(receiver, 2)
    assert receiver.names == ["execute_tool shop.look", "invoke_agent"]


@pytest.mark.slow
async def test_two_processes_send_each_span_once(
    remit_in: OpenRemit,
    tmp_path: Path,
    receiver: Collector,
) -> None:
    async with (
        sending(opened(remit_in, tmp_path, receiver.url)) as remit,
        sending(opened(remit_in, tmp_path, receiver.url, work=False)),
    ):
        for _ in range(3):
            await run_errands(remit)
        await until(receiver, 3 * SPANS)
        await until_kept(remit)
    assert max(Counter(receiver.came).values()) == 1


def child_of(folder: str, url: str) -> None:
    """Send spans until killed; entry point of a process."""

    async def main() -> None:
        flags = {"journal.url": f"{folder}/journal.db", "app.principal": "alice", "telemetry.otlp_url": url, **FLAGS}
        settings = load(env={}, cwd=Path(folder), flags=flags)
        async with sending(Remit(settings=settings, work=False, **GIVEN)):
            await asyncio.Event().wait()

    asyncio.run(main())


@pytest.mark.slow
async def test_what_a_killed_process_sent_and_did_not_keep_is_sent_again_with_the_same_ids(
    remit_in: OpenRemit,
    tmp_path: Path,
    receiver: Collector,
) -> None:
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["tests.parts.audit.telemetry.test_sending"])
    child = processes.Process(target=child_of, args=(str(tmp_path), receiver.url))
    receiver.before_answer = child.kill
    async with remit_of(remit_in, tmp_path) as remit:
        child.start()
        try:
            while await remit.runtime.journal.head(STREAM) is None:
                await remit.clock.sleep(0.02)
            await run_errands(remit)
            await until(receiver, 1)
            await asyncio.to_thread(child.join)
        finally:
            child.kill()
    receiver.before_answer = lambda: None
    sent = list(receiver.came)
    later = JumpingClock(SystemClock(), ahead_s=60)  # the dead process's lease is over
    async with sending(opened(remit_in, tmp_path, receiver.url, work=False, clock=later)) as remit:
        await until(receiver, SPANS)
        await until_kept(remit)
    assert len(receiver.spans) == SPANS
    assert {identity: count for identity, count in Counter(receiver.came).items() if identity in sent} == dict.fromkeys(
        sent, 2
    )
