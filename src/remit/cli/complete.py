"""Completions that a shell offers for an argument: jobs, questions, recipes, tools. A failure offers nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from remit.cli.context import MEMORY, CommandState
from remit.cli.output import cut, one_line

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

    from remit.cli.access import Opened

_RECENT: Final = 50
_RUNNABLE: Final = (".yaml", ".yml", ".json", ".py")
Found = list[tuple[str, str]]
"""Words and what they are."""


def jobs(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Recent jobs, and `last`."""

    async def look(remit: Opened) -> Found:
        rows = await remit.service.jobs.rows(limit=_RECENT)
        return [("last", "the newest job"), *((row.job, f"{row.state} {row.name}") for row in rows)]

    return _offered(context, incomplete, look)


def operations(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Operations of the HTTP API."""
    from click.shell_completion import CompletionItem

    from remit.api.calls import operations_of

    operations = operations_of()
    names = sorted(name for name in operations if name.startswith(incomplete))
    return [CompletionItem(name, help=_plain(operations[name].summary)) for name in names]


def confirmations(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Open questions, and `show` before one."""
    first = [] if context.params.get("words") else [("show", "show a question and ask nothing")]

    async def look(remit: Opened) -> Found:
        questions = await remit.service.confirmations.pending()
        return [*first, *((question.confirmation, question.tool or question.question) for question in questions)]

    return _offered(context, incomplete, look)


def steps(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Steps of the job that stands before."""

    async def look(remit: Opened) -> Found:
        job = await remit.service.jobs.find(context.params.get("job") or "")
        return [(row.step, f"{row.name} {row.state}") for row in (await remit.service.jobs.view(job)).steps]

    return _offered(context, incomplete, look)


def parameters(context: click.Context, incomplete: str) -> list[CompletionItem]:
    """Return what the recipe that stands before takes, as options."""
    from remit.app import Remit
    from remit.cli.catalog_record import recorded

    name = context.params.get("name") or ""

    async def look(remit: Opened) -> Found:
        here = {view.name: tuple(each.name for each in view.parameters) for view in await remit.service.recipes.views()}
        known = recorded(remit.settings) if isinstance(remit, Remit) else None
        values = {**here, **(known.parameters if known is not None else {})}.get(name, ())
        return [(f"--{each.replace('_', '-')}", "") for each in values]

    return _offered(context, incomplete, look, code=True)


def _files(incomplete: str) -> list[CompletionItem]:
    """Files here that may hold plans or recipes."""
    from click.shell_completion import CompletionItem

    names = sorted(path.name for path in Path().iterdir() if path.suffix in _RUNNABLE and path.is_file())
    return [CompletionItem(name) for name in names if name.startswith(incomplete)][:_RECENT]


def recipes(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Recipes and files here that may be plans; other files if there are none."""
    from click.shell_completion import CompletionItem

    from remit.app import Remit
    from remit.cli.catalog_record import recorded

    async def look(remit: Opened) -> Found:
        here = {view.name: view.about.partition("\n")[0] for view in await remit.service.recipes.views()}
        known = recorded(remit.settings) if isinstance(remit, Remit) else None
        return list({**here, **dict(known.recipes if known is not None else ())}.items())

    completions = _offered(context, incomplete, look, code=True) + _files(incomplete)
    return completions or [CompletionItem(incomplete, type="file")]


def tools(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Tools."""

    async def look(remit: Opened) -> Found:
        return [(tool.name, tool.description) for tool in await remit.service.tools.views()]

    return _offered(context, incomplete, look, code=True)


def _offered(
    context: click.Context, incomplete: str, look: Callable[[Opened], Awaitable[Found]], *, code: bool = False
) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    state = CommandState()
    params = context.find_root().params
    state.quiet, state.config, state.server = True, params.get("config"), params.get("server") or ""
    state.journal = MEMORY if code else params.get("journal")

    try:
        words = state.ask(look, code="recorded" if code else "unused")
    except Exception:  # noqa: BLE001 - a shell's prompt is no place for errors
        return []
    return [CompletionItem(word, help=_plain(text)) for word, text in words if word.startswith(incomplete)]


def _plain(text: str) -> str:

    return cut(one_line(text), 60)
