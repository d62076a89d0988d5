"""Workers: the processes that run jobs, and their code."""

from __future__ import annotations

from typing import ClassVar, Final

from remit.pages.page import Page, PageRequest, View
from remit.service.workers import WorkerView


class Workers(View, frozen=True, kw_only=True):
    """Those that work now, the one that began last first."""

    template: ClassVar[str] = "workers.html"
    workers: tuple[WorkerView, ...]
    versions: dict[str, int]
    """The number of versions of a recipe they run, by its name."""


async def workers(asked: PageRequest) -> Workers:
    """Look who works."""
    found = await asked.service.workers.views()
    every: dict[str, set[str]] = {}
    for one in found:
        for name, version in one.recipes.items():
            every.setdefault(name, set()).add(version)
    return Workers(title="Workers", workers=tuple(found), versions={name: len(all_) for name, all_ in every.items()})


PAGES: Final = (
    Page(
        path="/workers",
        scope="read",
        handler=workers,
        name="Workers",
        key="w",
        under="What runs where?",
        about="processes that run jobs, and their code",
        live="heads",
    ),
)
