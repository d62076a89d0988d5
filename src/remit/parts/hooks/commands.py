"""`remit guard`: the gate before an agent's own tools, by its hooks."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import click

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.group import LazyCommand, LazyGroup, show_help
from remit.cli.options import json_option, pass_state
from remit.cli.output import one_line
from remit.cli.values import usage_error
from remit.errors import UsageError
from remit.parts.hooks.hook import AGENTS

if TYPE_CHECKING:
    from remit.parts.hooks.daemon import GuardFolder
    from remit.parts.hooks.hook import AgentName
    from remit.parts.hooks.probe import ProbeFinding
    from remit.settings import Settings

COMMANDS: Final[dict[str, LazyCommand]] = {
    "connect": LazyCommand("Commands", "Have an agent ask the gate before its own tools."),
    "disconnect": LazyCommand("Commands", "Take the guard out of an agent's configuration."),
    "status": LazyCommand("Commands", "Run agents once, and say whether they ask the gate."),
    "run": LazyCommand("Commands", "Run an agent with its hooks on, whatever the repository's settings say."),
    "serve": LazyCommand("Commands", "Answer hooks; the first hook starts it."),
    "ask": LazyCommand("Commands", "Pass a hook's message on, as an agent calls it."),
}


@click.group("guard", cls=LazyGroup, package="remit.parts.hooks.commands", entries=COMMANDS)
@click.pass_context
def command(context: click.Context) -> None:
    """Put the gate before an agent's own tools: its shell, edits and fetches."""
    show_help(context)


_AGENT = click.argument("agent", type=click.Choice(AGENTS))
_MANAGED = click.option(
    "--managed", is_flag=True, help="Claude: the machine's managed settings, which no repository can switch off."
)
_YES = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")


@command.command("connect")
@_AGENT
@_MANAGED
@click.option(
    "--deadline",
    metavar="SECONDS",
    default=580,
    show_default=True,
    type=click.IntRange(1, 3_000),
    help="After so many without an answer the call is not made; the agent waits 20 longer.",
)
@_YES
@json_option("what is changed")
@pass_state
def connect_command(state: CommandState, agent: AgentName, managed: bool, deadline: int, yes: bool) -> int:
    """Have an agent ask the gate before its own tools.

    Writes hooks into the agent's configuration that ask the guard of these settings, whatever folder the agent works
    in. Shows the difference and asks; writes nothing if no one can answer, or with --json, unless you say --yes.
    `remit guard disconnect` takes it back. Restart the agent afterwards.
    """
    from remit.cli.servers import agreed, report, shown_difference
    from remit.mcp_config.config_file import read_text, replace_text
    from remit.mcp_config.connection_record import ConnectionRecord, put_together
    from remit.parts.hooks.daemon import GuardFolder
    from remit.parts.hooks.places import connected, file_of, make_client, taken_out
    from remit.parts.hooks.probe import trust_hooks

    settings = state.trusted()
    folder, file = GuardFolder(settings, os.environ), file_of(agent, os.environ, managed=managed)
    record = ConnectionRecord(folder.connections, file)
    text = read_text(file) if file.exists() else None
    earlier = record.read()
    before = text if earlier is None or text is None else taken_out(earlier, text)
    with usage_error(f"the client cannot be made in {folder.path}", "Make it writable."):
        client = make_client(folder, settings.file, deadline)
    after, changes = connected(agent, before, file, client)
    difference = shown_difference(file, text or "", after)
    written = after != text and agreed(state, difference, f"Change {file}?", yes=yes)
    if written:
        record.keep(put_together(None, file, agent, before, after, changes))
        replace_text(file, after)
    notes = []
    if written and agent == "codex":
        with usage_error("Codex does not say that it trusts the hooks", "Trust them in Codex: /hooks."):
            notes = trust_hooks(file, folder.connections, Path.cwd())
    names = [change.name for change in changes]
    fields = {"file": str(file), "agent": agent, "hooks": names, "notes": notes, "diff": difference, "written": written}
    return state.show(fields, lambda state, _: report(state, notes, f"connected {agent}" if written else ""))


@command.command("disconnect")
@_AGENT
@_MANAGED
@_YES
@json_option("what is changed")
@pass_state
def disconnect_command(state: CommandState, agent: AgentName, managed: bool, yes: bool) -> int:
    """Take the guard out of an agent's configuration.

    The file is as it was before, byte for byte. If it was changed since, only Remit's hooks are taken out.
    """
    from remit.cli.servers import agreed, report, shown_difference
    from remit.mcp_config.config_file import read_text, remove, replace_text
    from remit.mcp_config.connection_record import ConnectionRecord
    from remit.parts.hooks.daemon import GuardFolder
    from remit.parts.hooks.places import file_of, taken_out
    from remit.parts.hooks.probe import untrust

    folder, file = GuardFolder(state.settings(), os.environ), file_of(agent, os.environ, managed=managed)
    record = ConnectionRecord(folder.connections, file)
    connection = record.read()
    if connection is None:
        raise UsageError(
            f"`remit guard connect {agent}` changed nothing in {file}", remedy=f"Look for yourself: {file}."
        )
    text = read_text(file)
    after = taken_out(connection, text)
    difference = shown_difference(file, text, after or "")
    written = agreed(state, difference, f"Change {file}?", yes=yes)
    if written:
        if after is None:
            remove(file)
        elif after != text:
            replace_text(file, after)
        record.forget()
        if agent == "codex":
            untrust(file, folder.connections)
    fields = {"file": str(file), "agent": agent, "diff": difference, "written": written}
    return state.show(fields, lambda state, _: report(state, [], f"disconnected {agent}" if written else ""))


@command.command("status")
@click.argument("agents", nargs=-1, type=click.Choice(AGENTS))
@json_option("the findings")
@pass_state
def status_command(state: CommandState, agents: tuple[AgentName, ...]) -> int:
    """Run agents once, and say whether they ask the gate.

    Runs each agent that is connected, or AGENTS, in an empty folder and in this one, before a scripted model on this
    machine that wants one harmless call; no provider is reached. Names the line that switches its hooks off, and the
    latest sessions of which a call was the first word. Exits with status 1 if one does not ask.
    """
    from remit.parts.hooks.checks import UNSEEN, sessions_unseen
    from remit.parts.hooks.daemon import GuardFolder
    from remit.parts.hooks.probe import ProbeFinding, probe
    from remit.record.teller import BEGIN_UNSEEN

    wanted = agents or GuardFolder(state.settings(), os.environ).agents()
    findings = [finding for agent in wanted for finding in probe(agent, Path.cwd(), os.environ)]
    stands = all(finding.answer == "asked" for finding in findings)
    if wanted and not state.server:
        unseen = state.ask_here(lambda remit: sessions_unseen(remit.runtime.journal, wanted), code="unused", blank=True)
        findings += [ProbeFinding(agent, session, BEGIN_UNSEEN, UNSEEN) for agent, session in unseen]
    rows = [
        {"agent": finding.agent, "where": finding.where, "answer": finding.answer, "why": finding.detail}
        for finding in findings
    ]
    state.listing(rows, lambda state, _: _print(state, findings), "no agent is connected: remit guard connect AGENT")
    return exit_codes.OK if stands else exit_codes.ERROR


_WORDS: Final = {"asked": ("ok  ", "ok"), "begin not seen": ("warn", "warn")}


def _print(state: CommandState, findings: list[ProbeFinding]) -> None:
    out = state.output.out
    for finding in findings:
        word, style = _WORDS.get(finding.answer, ("fail", "fail"))
        verdict = "gate asked" if finding.answer == "asked" else finding.answer
        where = f"{finding.agent}, {finding.where}: {verdict}".replace(", :", ":")
        out.line(f"{out.style(word, style)}  {one_line(where)}")
        if finding.detail:
            out.line(f"      {out.style('->', 'cyan')} {one_line(finding.detail)}")


@command.command("run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--sandbox", is_flag=True, help="Run it in the sandbox, with its settings read-only.")
@click.option("--network", "hosts", metavar="HOST", multiple=True, help="Let it reach a host from the sandbox.")
@click.option("--read", "reads", metavar="PATH", multiple=True, help="Let it read a path in the sandbox.")
@click.option("--write", "writes", metavar="PATH", multiple=True, help="Let it change a path in the sandbox.")
@click.argument("words", metavar="COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
@pass_state
def run_command(
    state: CommandState,
    sandbox: bool,
    hosts: tuple[str, ...],
    reads: tuple[str, ...],
    writes: tuple[str, ...],
    words: tuple[str, ...],
) -> int:
    """Run an agent with its hooks on, whatever the repository's settings say.

    Adds the arguments of Claude and Codex that win over a repository which switches hooks off. Refuses an agent that is
    not connected, and what would switch its hooks off on its own command line. Ends with the agent's status.

    With --sandbox nothing that it starts can change the settings by which it asks. It can change its project and its
    own state, and reach its maker's hosts and those that its variables name, such as ANTHROPIC_BASE_URL.
    """
    from remit.parts.hooks.daemon import GuardFolder
    from remit.parts.hooks.places import with_hooks_on

    if not sandbox and (hosts or reads or writes):
        raise UsageError("what an agent may reach is limited in the sandbox alone", remedy="Add --sandbox.")
    settings = state.trusted() if sandbox else state.settings()
    folder = GuardFolder(settings, os.environ)
    command = with_hooks_on(words, folder.agents(), os.environ)
    with usage_error(f"{command[0]} cannot be started", "Install it, or correct PATH."):
        if not sandbox:
            os.execvp(command[0], command)  # noqa: S606 - what the person asked for
        return _run_fenced(settings, folder, command, (hosts, reads, writes))


def _run_fenced(settings: Settings, folder: GuardFolder, command: list[str], wishes: Sequence[tuple[str, ...]]) -> int:
    from remit.cli.runner import run_to_end
    from remit.clock import SystemClock
    from remit.mcp_config.agent_ground import AgentNeeds
    from remit.parts.hooks.fence import fenced, run_fenced
    from remit.wiring.parts import enclosures_of, parts_of

    agent = cast("AgentName", Path(command[0]).name)
    program = fenced(agent, command, os.environ, folder.path, AgentNeeds(*wishes))
    enclosures = enclosures_of(parts_of(settings), settings)
    return run_to_end(run_fenced(program, enclosures, folder, _serve_words(settings), SystemClock()))


def _serve_words(settings: Settings) -> list[str]:
    from remit.parts.hooks.daemon import program

    config = ["--config", str(settings.file.absolute())] if settings.file is not None else []
    return [*program(), *config, "guard", "serve"]


@command.command("serve")
@pass_state
def serve_command(state: CommandState) -> int:
    """Answer hooks; the first hook starts it.

    Ends when no hook has come for hooks.idle_s. Where another one serves the same settings, it ends at once.
    """
    from remit.cli.logs import log_to_stderr
    from remit.cli.runner import run_to_end

    log_to_stderr(max(state.verbose, 1))
    run_to_end(_serve(state.trusted()))
    return exit_codes.OK


async def _serve(settings: Settings) -> None:
    import msgspec

    from remit.app import Remit
    from remit.parts.hooks.daemon import GuardFolder, GuardServer
    from remit.parts.hooks.guard import AgentTools, HookGuard
    from remit.parts.hooks.settings import HookSettings
    from remit.settings import override
    from remit.settings.parts import settings_of

    own = settings_of(settings, "hooks", HookSettings)
    app = msgspec.structs.replace(settings.app, modules=(), capabilities=())
    mcp = msgspec.structs.replace(settings.mcp, servers=(), servers_json="", server_cmd="")
    only = msgspec.structs.replace(settings.tools, only=("functions",))  # the guard serves agents' own tools alone
    settings = msgspec.structs.replace(settings, app=app, mcp=mcp, tools=only)
    if own.mode == "observe":
        settings = override(settings, {"policy.rules": [{"id": "observe", "effect": "allow", "taint": "allow"}]})
    tools = AgentTools()
    async with Remit(settings=settings, providers=[tools], work=False) as remit:
        guard = HookGuard(remit, tools, mode=own.mode, hold_s=own.hold_s, defer=own.defer)
        await GuardServer(guard, remit.clock, idle_s=own.idle_s).serve(GuardFolder(settings, os.environ))


@command.command("ask", hidden=True)
@click.argument("tag")
@pass_state
def ask_command(state: CommandState, tag: str) -> int:
    """Pass a hook's message on, as an agent calls it.

    Starts the guard if it does not run. Ends with status 2 on every failure: the call is not made then.
    """
    from remit.clock import SystemClock
    from remit.parts.hooks.client import main
    from remit.parts.hooks.daemon import DEADLINE_S, GuardFolder, start

    try:
        settings = state.settings()
        folder = GuardFolder(settings, os.environ)
        asyncio.run(start(folder, _serve_words(settings), SystemClock()))
        main(str(folder.socket), str(DEADLINE_S), tag, "/bin/false")
    except BaseException as error:  # noqa: BLE001 - whatever it is, the call must not be made
        click.echo(f"remit guard: {error}; the call is not made", err=True)
    os._exit(2)
