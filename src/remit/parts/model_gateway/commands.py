"""`remit record`, and `remit replay JOB -- COMMAND`: an unchanged program, recorded, and on its record."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.listen_options import ListenOptions, listening_options
from remit.cli.options import json_option, pass_state
from remit.codes import Code
from remit.errors import StateError, UsageError
from remit.http.guard import token_of
from remit.ids import new_id
from remit.jobs.state import stream_of
from remit.mcp_config.agent_ground import AgentNeeds
from remit.parts.model_gateway.answers import Answers, ReplayFinding, recording_of
from remit.parts.model_gateway.canonical import RULES_VERSION
from remit.parts.model_gateway.clis import Place
from remit.parts.model_gateway.programs import (
    RUN,
    Fence,
    ProgramProvider,
    RunResult,
    Terminal,
    folder_of_run,
    recorded_program,
    tools_of,
)
from remit.parts.model_gateway.runs import TokenRun
from remit.parts.model_gateway.settings import NAME, ModelGatewaySettings
from remit.randomness import salt
from remit.service.handle import ended
from remit.service.options import Options
from remit.settings.parts import settings_of
from remit.settings.principal import principal
from remit.tasks import first

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remit.app import Remit
    from remit.capability import ReplayTerms
    from remit.cli.runner import SignalStop
    from remit.journal.event import Blob
    from remit.journal.kinds import Payload

_RULE: Final = {"id": "remit-record", "effect": "allow", "tools": [RUN]}
"""Follows from the command line: the person who typed the program wants it run. A rule that denies is stronger."""
_SHOWN: Final = 10


class ReplayedProgram(msgspec.Struct, frozen=True, kw_only=True):
    """What a program did on the recorded answers of a job."""

    job: str
    exit_code: int
    recorded_exit_code: int | None
    matched: int
    recorded: int
    first_difference: ReplayFinding | None
    drifts: tuple[ReplayFinding, ...]
    """Results of tools that differ from the recorded ones."""
    left: tuple[str, ...]
    """Recorded questions that were not asked."""
    rules: tuple[str, ...]
    """The canonical rules that set something aside."""
    rules_version: int = RULES_VERSION

    @property
    def same(self) -> bool:
        """Return whether every question was answered from the record."""
        return self.first_difference is None and not self.left


@click.command("record", context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True})
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED, metavar="[--] COMMAND...")
@click.option("--title", default="", help="Title to show in lists.")
@click.option("--tokens", type=click.IntRange(min=1), metavar="INTEGER", help="Tokens that its models may use.")
@click.option("--cost", type=click.FloatRange(min=0), metavar="DOLLARS", help="US dollars that its models may cost.")
@click.option("--calls", type=click.IntRange(min=1), metavar="N", help="Questions that it may ask models.")
@click.option("--steady", is_flag=True, help="Fix dates of commits, zone and language, so that a replay differs less.")
@click.option(
    "--governed", is_flag=True, help="Leave the agent no tools but Remit's; for claude, codex, gemini, opencode."
)
@click.option("--open", "opened", is_flag=True, help="Let it reach other hosts than its models'.")
@click.option("--otel", is_flag=True, help="Keep the spans that it tells of itself by OTLP, as its claims.")
@click.option("--sandbox", is_flag=True, help="Run it in the sandbox, where it sees its project alone.")
@click.option("--network", "hosts", metavar="HOST", multiple=True, help="Let it reach a host from the sandbox.")
@click.option("--read", "reads", metavar="PATH", multiple=True, help="Let it read a path in the sandbox.")
@click.option("--write", "writes", metavar="PATH", multiple=True, help="Let it change a path in the sandbox.")
@json_option("the job and the end of the program")
@pass_state
def command(
    state: CommandState,
    program: tuple[str, ...],
    title: str,
    tokens: int | None,
    cost: float | None,
    calls: int | None,
    steady: bool,
    governed: bool,
    opened: bool,
    otel: bool,
    sandbox: bool,
    hosts: tuple[str, ...],
    reads: tuple[str, ...],
    writes: tuple[str, ...],
) -> int:
    """Run a program, and record its model calls, whatever made it.

    Its calls pass the gate: policy, limits and budgets hold, and `remit trace`, `usage`, `export` and the console show
    them. The program finds the gateway by the usual variables (OPENAI_BASE_URL, ANTHROPIC_BASE_URL,
    GOOGLE_GEMINI_BASE_URL); codex, gemini and opencode are told in the way that they read. The keys of providers stay
    here. Other hosts are refused to it, and each attempt is recorded. The exit status is the program's.

    With --sandbox it sees its installation, its project, its own state and the files that COMMAND names, and can change
    neither git's hooks nor an agent's settings.
    """
    from remit.cli.runner import run_async

    needs = {"hosts": hosts, "reads": reads, "writes": writes}
    if not sandbox and any(needs.values()):
        raise UsageError("what a program may reach is limited in the sandbox alone", remedy="Add --sandbox.")
    if sandbox and opened:
        raise UsageError("the sandbox is open to named hosts alone", remedy="Say --network HOST for each.")
    budget = {name: value for name, value in (("tokens", tokens), ("cost", cost), ("calls", calls)) if value}
    options = {"budget": budget, "steady": steady, "governed": governed, "alone": not opened}
    options |= {"otel": True} if otel else {}
    options |= {"sandbox": {name: list(each) for name, each in needs.items()}} if sandbox else {}
    return run_async(lambda stop: _record(state, program, options, title, stop), gentle=True)


async def _record(
    state: CommandState, program: Sequence[str], inputs: dict[str, Any], title: str, stop: SignalStop
) -> int:
    settings = state.settings()
    flags = {"policy.rules": [*settings.policy.rules, _RULE], "model_gateway.programs": True}
    flags |= {"tools.only": [*settings.tools.only, NAME]} if settings.tools.only else {}
    async with state.remit(creates=True, flags=flags) as remit, remit.sending():
        place = {"folder": str(Path.cwd()), "home": os.environ.get("HOME", "")}
        options = Options(title=title or " ".join(program)[:100])
        job = await remit.service.jobs.start(
            recorded_program.bind({"command": list(program), **place, **inputs}, strict=False), options
        )
        state.note(f"job {job}")
        await _see_through(remit, job, stop)
        row = await remit.service.jobs.row(job)
        if row.state != "completed":
            view = await remit.service.jobs.view(job)
            reason = view.error.message if view.error is not None else row.state
            raise StateError(f"{job}: {reason}", code=Code.JOB_FAILED, remedy=f"See {state.command('trace', job)}.")
        result = msgspec.convert(await remit.service.jobs.result(job), RunResult)
    if state.as_json:
        state.output.json({"job": job, **msgspec.to_builtins(result)})
    else:
        _tell(state, job, program[0], result)
    return result.exit_code


async def _see_through(remit: Remit, job: str, stop: SignalStop) -> None:
    """Work on the job until it has ended; a signal ends its program first."""
    engine = remit.engine
    remit.awaited.add(stream_of(job))
    engine.start(only=remit.awaited, keep=True)
    engine.wake()
    stop.hurry = engine.stop
    waiting = asyncio.ensure_future(ended(remit.service, job))
    await first(asyncio.shield(waiting), stop.requested.wait())
    if not waiting.done():
        for provider in remit.runtime.providers:
            if isinstance(provider, ProgramProvider):
                provider.terminal.stop()
    await waiting


def _tell(state: CommandState, job: str, program: str, result: RunResult) -> None:
    if result.seen:
        cost = f", ${result.cost:.4f}" if result.cost else ""
        refused = f", {result.refused} refused" if result.refused else ""
        state.note(f"{result.requests} requests{refused}, {result.tokens} tokens{cost}")
    else:
        state.note(f"not seen: no model call of {program} came here, so nothing is known of what it asked")
    if result.changed:
        names = ", ".join(each.path for each in result.changed[:_SHOWN])
        state.note(f"changed {len(result.changed)} files: {names}{' …' if len(result.changed) > _SHOWN else ''}")
    if result.tried:
        state.note(f"refused to it: {', '.join(result.tried[:_SHOWN])}")
    if result.claimed:
        left = f", {result.claims_left_out} left out" if result.claims_left_out else ""
        state.note(f"{result.claimed} spans claimed by the program{left}")
    if result.ungoverned or result.governed:
        ran = f"{len(result.ungoverned)} ran ungoverned: no gate saw them"
        state.note(
            f"{result.governed + len(result.ungoverned)} tool calls, {ran if result.ungoverned else 'each governed'}"
        )
    state.note(f"see: {state.command('trace', job)}")


# --- the wires alone


@click.command("model-gateway")
@listening_options(8_322)
@pass_state
def serve_command(state: CommandState, listening: ListenOptions) -> int:
    """Serve the wires of models' providers alone: /openai, /anthropic and /gemini.

    As `remit serve` does: to the clients of [[clients]], or to this machine alone. Each call is judged and recorded.
    """
    from remit.cli.runner import run_async

    return run_async(lambda stop: _serve(state, listening, stop), gentle=True)


async def _serve(state: CommandState, listening: ListenOptions, stop: SignalStop) -> int:
    from remit.cli.door import ServerDoor
    from remit.parts.model_gateway.wiring import open_mounts

    flags = {**listening.flags, "model_gateway.serve": True}
    async with AsyncExitStack() as stack:
        remit = await stop.unless(stack.enter_async_context(state.remit(creates=True, flags=flags)))
        if remit is not None:
            door = ServerDoor(state, listening, remit.settings, remit.clock)
            await door.serve(open_mounts(remit, door.guard), "", stop.requested)
    return exit_codes.OK


# --- replay


def replay_program(state: CommandState, job: str, program: tuple[str, ...], terms: ReplayTerms) -> int:
    """Run a program on the recorded answers of a job; the exit status (remit.capability.Capability.replays)."""
    from remit.cli.runner import run_async

    return run_async(lambda stop: _replay(state, job, program, terms, stop), gentle=True)


async def _replay(state: CommandState, job: str, program: tuple[str, ...], terms: ReplayTerms, stop: SignalStop) -> int:
    if terms.fork_at and terms.results == "governed":
        raise UsageError("a fork goes on live, and calls tools", remedy="Leave --results governed or --fork-at out.")
    if terms.fork_at:
        return await _fork(state, job, program, terms.fork_at, stop)
    async with state.remit(code="unused") as remit:
        job = await remit.service.jobs.find(job)
        recording = await recording_of(remit.runtime.journal, job)
        from_record = terms.results == "governed"
        if from_record and not recording.args.get("governed"):
            remedy = "Record it with --governed, or replay it with --results drift or strict."
            raise UsageError(f"{job} had tools of its own, whose results only they can give", remedy=remedy)
        answers = Answers(recording, results="aside" if terms.results == "drift" else "strict")
        status = await _run_on(remit, answers, program, stop, replays=stream_of(job) if from_record else "")
        ended_well = (await remit.service.jobs.row(job)).state == "completed"
        recorded = (await remit.service.jobs.result(job))["exit_code"] if ended_well else None
    report = ReplayedProgram(
        job=job,
        exit_code=status,
        recorded_exit_code=recorded,
        matched=answers.matched,
        recorded=len(recording.calls),
        first_difference=answers.first,
        drifts=tuple(answers.drifts),
        left=tuple(call.question.step for call in answers.left()),
        rules=tuple(sorted(answers.rules)),
    )
    state.show(report, _print)
    return exit_codes.OK if report.same else exit_codes.DIVERGED


async def _fork(state: CommandState, job: str, program: tuple[str, ...], at: int, stop: SignalStop) -> int:
    """Record a program again that is given the recorded answers up to a question, and asks models from there on."""
    async with state.remit(code="unused") as remit:
        job = await remit.service.jobs.find(job)
        recording = await recording_of(remit.runtime.journal, job)
    args = recording.args
    options: dict[str, Any] = {name: bool(args.get(name)) for name in ("steady", "governed")}
    options["alone"] = args.get("alone") is not False
    options |= {"budget": {}, "replays": job, "fork_at": at}
    options |= {"sandbox": args["sandbox"]} if args.get("sandbox") else {}
    options |= {"at": recording.folder} if recording.folder != str(Path.cwd()) else {}
    return await _record(state, program, options, f"fork of {job} at {at}", stop)


async def _run_on(remit: Remit, answers: Answers, program: tuple[str, ...], stop: SignalStop, *, replays: str) -> int:
    """Run a program that is given recorded answers alone; the exit status. Of its models nothing is recorded.

    `replays` is the stream of the job by which Remit's tools answer; empty: they are called.
    """
    from remit.parts.model_gateway.wiring import Listener

    folder, args, here = answers.recording.folder, answers.recording.args, str(Path.cwd())
    at = folder if folder != here else ""
    own = settings_of(remit.settings, NAME, ModelGatewaySettings)
    listener, terminal = Listener(remit.settings, own, remit.clock), Terminal(lambda: remit.runtime.enclosures)
    run, token = TokenRun(_NoLedger(), principal=principal(remit.settings)), token_of(salt(32))
    run.answers = answers
    listener.runs.open(token, run)
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(listener.listening())
        fenced = args.get("sandbox") or at
        fence = Fence(msgspec.convert(args.get("sandbox") or {}, AgentNeeds), _refuse, at) if fenced else None
        # Nothing listens at the discard port: every other host is refused.
        tools = tools_of(remit.settings, replays=replays) if args.get("governed") else ()
        place = Place(url, token, "http://127.0.0.1:9", folder_of_run(folder), tools)
        steady = bool(args.get("steady"))
        running = asyncio.ensure_future(terminal.run(program, here, place, steady=steady, fence=fence))
        await first(asyncio.shield(running), stop.requested.wait())
        terminal.stop()
        return await running


def _refuse(_place: str, _reason: str) -> None:
    """Refuse in silence, as the discard port does."""


class _NoLedger:
    """Records nothing, and asks nothing: a replay has no gate, for it reaches no model."""

    def place(self) -> str:
        return new_id("s")

    async def ask(self, _request: Any, _watch: Any) -> Any:
        raise AssertionError("a replay asks no model")

    async def record(self, payload: Payload, blobs: Sequence[Blob] = ()) -> None:
        """Record nothing."""

    async def decided(self, _confirmation: str) -> bool:
        return False


def _print(state: CommandState, report: ReplayedProgram) -> None:
    out = state.output.out
    verdict = "same" if report.same else "differs"
    line = f"{report.matched} of {report.recorded} recorded questions were asked and answered"
    out.line(f"{out.style(verdict, 'ok' if report.same else 'error')}  {line}")
    if (finding := report.first_difference) is not None:
        where = f"question {finding.number}" if finding.number else "a question without tools"
        out.line(f"first difference: {where}, {finding.path}{f' (step {finding.step})' if finding.step else ''}")
        out.line(f"  recorded  {finding.recorded}")
        out.line(f"  now       {finding.now}")
    if report.left:
        out.line(f"not asked: {', '.join(report.left[:_SHOWN])}")
    if report.drifts:
        out.line(f"{len(report.drifts)} tool results differ:")
        for drift in report.drifts[:_SHOWN]:
            out.line(f"  question {drift.number}: {drift.recorded} → {drift.now}")
    if report.recorded_exit_code not in {None, report.exit_code}:
        out.line(f"exit status: recorded {report.recorded_exit_code}, now {report.exit_code}")
    out.line(f"rules {report.rules_version}: {', '.join(report.rules) or 'none took part'}")
