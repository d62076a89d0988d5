"""`remit skills`: what agents may come under, why a skill does not count, and its switch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.group import LazyCommand, LazyGroup, show_help
from remit.cli.options import json_option, pass_state
from remit.cli.output import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remit.cli.access import Opened
    from remit.parts.skills.manifest import Finding
    from remit.parts.skills.noun import SkillRow, SkillView

COMMANDS: Final[dict[str, LazyCommand]] = {
    "list": LazyCommand("Commands", "List the skills, and what could not be loaded as one."),
    "show": LazyCommand("Commands", "Show what a skill allows, its files and its instructions."),
    "check": LazyCommand("Commands", "Say what is wrong with a skill, or with all of them."),
    "enable": LazyCommand("Commands", "Switch a skill on."),
    "disable": LazyCommand("Commands", "Switch a skill off."),
    "new": LazyCommand("Commands", "Write a skill to fill in."),
}


@click.group("skills", cls=LazyGroup, package="remit.parts.skills.commands", entries=COMMANDS)
@click.pass_context
def command(context: click.Context) -> None:
    """List skills, look at them, switch them on and off, and begin a new one.

    They are read when a process starts, from the folders in `skills.folders`.
    """
    show_help(context)


@command.command("list")
@json_option("the skills")
@pass_state
def list_command(state: CommandState) -> int:
    """List the skills, and what could not be loaded as one.

    An `unavailable` skill lacks a tool that it requires; whether one that is `not known` does cannot be said here. One
    that is `not loaded` has a manifest that cannot be used, or lies in a folder that does not count.
    """
    rows: list[SkillRow] = state.ask(lambda remit: remit.service.skills.rows(), code="recorded")
    return state.listing(rows, _print, "there is no skill")


def _print(state: CommandState, rows: list[SkillRow]) -> None:
    from remit.cli.tables import TableColumn, table

    columns = ("STATE", "SKILL", "FROM", "RUN TYPES", TableColumn("WHAT, OR WHY NOT", whole=False))
    cells = []
    for row in rows:
        standing, reason = _standing(state, row)
        cells.append((standing, row.name, row.source, ", ".join(row.run_types), reason or row.description))
    table(state.output.out, columns, cells)


def _standing(state: CommandState, row: SkillRow | SkillView) -> tuple[str, str]:
    """Return the state of a skill and its reason, as far as this command knows the tools that there are."""
    if row.state != "unavailable" or state.knows_tools:
        return row.state, row.why
    return "not known", "it requires tools that were not listed here yet"


@command.command("show")
@click.argument("skill")
@json_option("the skill")
@pass_state
def show_command(state: CommandState, skill: str) -> int:
    """Show what a skill allows, its files and its instructions."""
    return state.show(state.ask(lambda remit: remit.service.skills.view(skill), code="recorded"), _print_skill)


def _print_skill(state: CommandState, view: SkillView) -> None:

    out, (standing, reason) = state.output.out, _standing(state, view)
    out.line(one_line(f"{view.name}: {view.description or 'no description'}"))
    rows = {
        "state": f"{standing}{f', {reason}' if reason else ''}",
        "from": " ".join(part for part in (view.source, view.path) if part),
        "digest": view.digest,
        "run types": ", ".join(view.run_types) or "any that a job names it for",
        "tools": ", ".join(view.tools) or "none",
        "rules": "; ".join(f"{rule['effect']} {', '.join(rule.get('tools', ['every tool']))}" for rule in view.rules),
        "sandbox": "; ".join(msgspec.json.encode(layer).decode() for layer in view.sandbox),
        "author wants": ", ".join(view.allowed_tools),
        "license": view.license,
        "needs": view.compatibility,
        "text": "vouched for" if view.trusted else "untrusted",
        "files": ", ".join(view.files),
        **{f"finding {finding.code}": finding.message for finding in view.findings},
    }
    for name, text in rows.items():
        if text:
            out.line(f"  {out.style(f'{name:<13}', 'dim')} {one_line(text)}")
    if view.body:
        out.line("")
        for line in view.body.splitlines():
            out.line(one_line(line))


@command.command("check")
@click.argument("skill", required=False, default="")
@json_option("the findings")
@pass_state
def check_command(state: CommandState, skill: str) -> int:
    """Say what is wrong with a skill, or with all of them.

    SKILL is a skill's name, or the path of its folder or manifest. Exits with status 1 if a skill cannot be loaded.
    """
    path = Path(skill)
    if skill and ("/" in skill or path.exists()):
        findings = _checked(path.absolute())
    else:

        async def rows(remit: Opened) -> list[SkillRow]:
            rows: list[SkillRow] = await remit.service.skills.rows()
            if skill and not any(row.name == skill for row in rows):
                await remit.service.skills.view(skill)
            return [row for row in rows if skill in {"", row.name}]

        findings = [finding for row in state.ask(rows, code="recorded") for finding in _told(row.name, row.findings)]
    state.listing(findings, _print_findings, "nothing is wrong")
    return exit_codes.ERROR if any(finding["fatal"] for finding in findings) else exit_codes.OK


def _print_findings(state: CommandState, findings: list[dict[str, object]]) -> None:

    for finding in findings:
        verdict = "fail" if finding["fatal"] else "warn"
        state.output.out.line(one_line(f"{verdict:<4}  {finding['skill']}: {finding['code']}: {finding['message']}"))


def _checked(path: Path) -> list[dict[str, object]]:
    """Return what is wrong with a skill at a path."""
    from remit.parts.skills.folder import SkillPlace
    from remit.parts.skills.manifest import InvalidManifestError

    place = SkillPlace(path.parent, path.name, path.is_dir())
    try:
        manifest, _ = place.read()
        findings, name = manifest.findings, manifest.name
    except InvalidManifestError as error:
        findings, name = (error.finding,), path.name
    return _told(name, findings)


def _told(name: str, findings: Sequence[Finding]) -> list[dict[str, object]]:
    return [{"skill": name, **msgspec.structs.asdict(finding)} for finding in findings]


def _switch(state: CommandState, skill: str, reason: str, *, on: bool) -> int:
    row = state.ask(
        lambda remit: getattr(remit.service.skills, "enable" if on else "disable")(skill, reason=reason),
        writes=True,
        creates=True,
    )
    return state.show(row, _print_switched)


def _print_switched(state: CommandState, row: SkillRow) -> None:
    state.output.out.line(f"{row.name} is {row.state}{f': {row.why}' if row.why else ''}")


@command.command("enable")
@click.argument("skill")
@click.option("--reason", default="", help="The reason, for the record.")
@json_option("the skill")
@pass_state
def enable_command(state: CommandState, skill: str, reason: str) -> int:
    """Switch a skill on, in every process that works on the journal.

    One that remit.toml switches off stays off.
    """
    return _switch(state, skill, reason, on=True)


@command.command("disable")
@click.argument("skill")
@click.option("--reason", default="", help="The reason, for the record.")
@json_option("the skill")
@pass_state
def disable_command(state: CommandState, skill: str, reason: str) -> int:
    """Switch a skill off, in every process that works on the journal.

    New jobs are refused whose run type only it allows. Jobs under way finish, or wait: `skills.switched_off`.
    """
    return _switch(state, skill, reason, on=False)


@command.command("new")
@click.argument("name")
@click.option("--in", "folder", default="skills", metavar="FOLDER", help="The folder of skills. Default: skills.")
@json_option("the file")
@pass_state
def new_command(state: CommandState, name: str, folder: str) -> int:
    """Write a skill to fill in, as FOLDER/NAME/SKILL.md."""
    from remit.parts.skills.folder import write_skill

    file = write_skill(name, Path(folder))
    state.show({"file": str(file)}, lambda state, _: state.output.out.line(str(file)))
    state.note("Fill it in, check it (remit skills check), and name its folder in [skills] folders of remit.toml.")
    return exit_codes.OK
