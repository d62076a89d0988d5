"""`remit run`: start a job from a recipe or a plan, and see it through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from remit.cli import complete, exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.cli.runnable import from_module, list_runnable
from remit.cli.values import json_object, pairs
from remit.codes import Code
from remit.errors import UsageError
from remit.nearest import nearest

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from remit.cli.opened import Opened
    from remit.jobs.plans.plan import Plan
    from remit.service.recipes import RecipeView


_PLANS: Final = (".yaml", ".yml", ".json")


class _Command(click.Command):
    """A command that also completes the parameters of the recipe that it is to run."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Options of the command, then those of the recipe."""
        found = super().shell_complete(ctx, incomplete)
        return found + complete.parameters(ctx, incomplete) if incomplete.startswith("-") else found


@click.command(
    "run",
    cls=_Command,
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
@click.argument("name", required=False, metavar="NAME", shell_complete=complete.recipes)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[--PARAMETER VALUE]...")
@click.option("--input", "given", metavar="JSON|@FILE", help="All parameters as one JSON object; @- reads stdin.")
@click.option("--title", default="", help="Title to show in lists.")
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="Label the job; repeatable.")
@click.option("--priority", metavar="N", default=0, help="Workers run jobs with a higher priority first.")
@click.option(
    "--policy",
    "rules",
    metavar="FILE",
    help="Add rules for this job: a TOML file of [[policy.rules]] that deny or ask.",
)
@click.option(
    "--untrusted",
    is_flag=True,
    help="The input is untrusted text, such as a mail: an agent's task then names nothing that it may reach.",
)
@click.option("--detach", is_flag=True, help="Print the job's id and leave it to a worker.")
@click.option(
    "--wait", "patient", is_flag=True, help="Wait for approvals, signals and timers instead of exiting with status 4."
)
@json_option("id, state, and result or error")
@click.option("-h", "--help", "help_", is_flag=True, help="Show this message; with NAME, show the recipe's parameters.")
@pass_state
@click.pass_context
def command(
    context: click.Context,
    state: State,
    name: str | None,
    words: tuple[str, ...],
    given: str | None,
    title: str,
    labels: tuple[str, ...],
    priority: int,
    rules: str | None,
    untrusted: bool,
    detach: bool,
    patient: bool,
    help_: bool,
) -> int:
    """Run a recipe or a plan, and show its result.

    NAME is a recipe, a plan (.yaml, .yml or .json), or a Python file that defines one recipe; FILE.py:RECIPE picks one
    of several. Pass the recipe's parameters as options: `remit run NAME --help` lists them. Without NAME, lists what
    you can run.

    Progress goes to stderr, the result to stdout. Ctrl-C stops the job; you can resume it later. If a call needs
    approval, Remit asks you at the terminal. Without a terminal it prints how to answer and exits with status 4.
    """
    if name is None:
        if help_:
            click.echo(context.get_help())
            return exit_codes.OK
        return list_runnable(state, Path())
    name = from_module(state, name)
    if help_:
        return _explain(context, state, name)
    options: dict[str, Any] = {"title": title, "labels": pairs(labels, "--label"), "priority": priority}
    options["untrusted"] = untrusted
    if rules is not None:
        from remit.cli.policies import rules_in

        options["policy"] = rules_in(Path(rules))
    start = _Start(name, words, json_object(given, "--input") if given is not None else {}, options)
    if detach:
        return _detach(state, start)
    from remit.cli.working import work_on

    return work_on(state, start, patient=patient, creates=start.job)


class _Start:
    """Creates the job, once everything about it was found to be right."""

    def __init__(self, name: str, words: Sequence[str], given: dict[str, Any], options: dict[str, Any]) -> None:
        from remit.ids import new_id

        self.name = name
        self.words = words
        self.given = given
        self.job = new_id("job")
        self.options = {**options, "job": self.job}

    async def __call__(self, remit: Opened) -> list[str]:
        """The job's id. Raises UsageError."""
        from remit.service.options import Options

        options = Options(**self.options)
        if is_plan(self.name):
            plan = await _plan(remit, self.name)
            inputs = {**self.given, **plan_input(plan, self.words)}
            return [await remit.service.jobs.start_plan(plan, inputs, options)]
        words = recipe_input(await remit.service.recipes.view(self.name), self.words)
        return [await remit.service.jobs.start_named(self.name, {**self.given, **words}, options)]


def is_plan(name: str) -> bool:
    """Whether a name is a plan's file rather than a recipe."""
    return name.endswith(_PLANS)


async def _plan(remit: Opened, file: str) -> Any:
    from remit.jobs.plans.source import load_plan

    tools = {word for tool in await remit.service.tools.views() for word in (tool.name, tool.key, tool.wire_name)}
    return load_plan(file, tools=tools, recipes=[one.name for one in await remit.service.recipes.views()])


def _detach(state: State, start: _Start) -> int:
    from remit.cli.output import reserved_stdout

    async def create(remit: Opened) -> str:
        return (await start(remit))[0]

    with reserved_stdout():
        job = state.ask(create, creates=True)
    if state.as_json:
        state.output.json({"job": job, "state": "pending"})
    else:
        state.output.out.line(job)
    return exit_codes.OK


# --- help


def _explain(context: click.Context, state: State, name: str) -> int:
    """Print what a recipe or a plan takes; nothing is opened for it but the modules."""
    from remit.cli.runhelp import plan_help, recipe_help

    if not state.server:
        state.journal = ":memory:"

    async def found(remit: Opened) -> Any:
        return await _plan(remit, name) if is_plan(name) else await remit.service.recipes.view(name)

    what = state.ask(found)
    formatter = context.make_formatter()
    if is_plan(name):
        plan_help(formatter, name, what)
    else:
        recipe_help(formatter, what)
    click.echo(formatter.getvalue().rstrip("\n"))
    return exit_codes.OK


_TRUTH: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class Kind(msgspec.Struct, frozen=True):
    """How the text of an option becomes a value; else it is JSON, or a text where it is none."""

    text: bool = False
    """Takes the text as it is."""
    flag: bool = False
    """Yes or no; may stand without a value."""
    many: bool = False
    """May be given several times, or once as a JSON list."""


def recipe_input(recipe: RecipeView, words: Sequence[str]) -> dict[str, Any]:
    """What options give a recipe, by parameter. Raises UsageError, which lists its parameters."""
    kinds = {one.name: Kind(text=one.text, flag=one.flag, many=one.many) for one in recipe.parameters}
    shown = ", ".join(one.shown for one in recipe.parameters)
    return _Reader(recipe.name, kinds, f"Its parameters are: {shown or 'none'}.").read(words)


def plan_input(plan: Plan, words: Sequence[str]) -> dict[str, Any]:
    """What options give a plan, by input. Raises UsageError, which lists its inputs."""
    kinds = {
        name: Kind(text=one.type == "string", flag=one.type == "boolean", many=one.type == "array")
        for name, one in plan.inputs.items()
    }
    shown = ", ".join(f"{name} ({one.type})" for name, one in plan.inputs.items())
    return _Reader(plan.name, kinds, f"Its inputs are: {shown or 'none'}.").read(words)


class _Reader:
    """Reads the options of one recipe or plan."""

    def __init__(self, owner: str, kinds: Mapping[str, Kind], remedy: str) -> None:
        self.owner = owner
        self.kinds = kinds
        self.remedy = remedy
        self.found: dict[str, Any] = {}

    def read(self, words: Sequence[str]) -> dict[str, Any]:
        """Every option's value."""
        rest = list(words)
        while rest:
            word = rest.pop(0)
            if not word.startswith("--") or word == "--":
                short = word.startswith("-") and word != "--"
                before = (
                    f"Options of every command stand before it: remit {word} …. " if short else "Write --name value. "
                )
                raise self._wrong(f"{word!r} belongs to no option", before)
            option, separator, text = word[2:].partition("=")
            name, negated = self._named(option)
            if not separator:
                text = self._next(option, self.kinds[name], rest, negated=negated)
            self._put(option, name, text)
        return self.found

    def _named(self, option: str) -> tuple[str, bool]:
        """The parameter that an option names, and whether it says no to it."""
        name = option.replace("-", "_")
        for known in (option, name):
            if known in self.kinds:
                return known, False
        positive = name.removeprefix("no_")
        if positive != name and self.kinds.get(positive, Kind()).flag:
            return positive, True
        hint = "".join(f"Did you mean --{close}? " for close in nearest(name, self.kinds))
        raise self._wrong(f"there is no option --{option}", hint)

    def _next(self, option: str, kind: Kind, rest: list[str], *, negated: bool) -> str:
        """The value that follows, or the one that an option stands for by itself."""
        if negated:
            return "false"
        if kind.flag and (not rest or rest[0].lower() not in _TRUTH):
            return "true"
        if not rest:
            raise self._wrong(f"--{option} needs a value")
        return rest.pop(0)

    def _put(self, option: str, name: str, text: str) -> None:
        kind = self.kinds[name]
        value = _value(text, kind)
        if kind.many and not isinstance(value, list):
            self.found[name] = [*self.found.get(name, []), value]
        elif name in self.found:
            raise self._wrong(f"--{option} is given twice", "Give it once. ")
        else:
            self.found[name] = value

    def _wrong(self, what: str, remedy: str = "") -> UsageError:
        return UsageError(f"{self.owner}: {what}", code=Code.INVALID_INPUT, remedy=remedy + self.remedy)


def _value(text: str, kind: Kind) -> Any:
    if kind.flag and text.lower() in _TRUTH:
        return _TRUTH[text.lower()]
    if kind.text and not (kind.many and text.lstrip().startswith("[")):
        return text
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text  # a date, a word of an enumeration, or wrong: binding the input says which
