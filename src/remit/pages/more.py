"""Everything else: the pages without a door of their own, by question; and how a reader likes the pages."""

from __future__ import annotations

from typing import ClassVar, Final, Literal

import msgspec

from remit.pages.page import LOOK, LOOKS, Page, PageRequest, See, View

_YEAR_S: Final = 31_536_000


class More(View, frozen=True, kw_only=True):
    """The other pages, which stand in the frame."""

    template: ClassVar[str] = "more.html"


class Display(msgspec.Struct, frozen=True, kw_only=True):
    """How a reader likes the pages; empty: as they are."""

    time: Literal["", "utc"] = ""
    density: Literal["", "compact"] = ""
    theme: Literal["", "light", "dark"] = ""


async def more(_asked: PageRequest) -> More:
    """List the pages."""
    return More(title="Everything else")


async def display(asked: PageRequest) -> See:
    """Keep in the browser how its reader likes the pages."""
    form: Display = asked.form
    words = ".".join(word for word in LOOKS if word in {form.time, form.density, form.theme})
    return See("/more", f"{LOOK}={words}; Path=/; Max-Age={_YEAR_S}; SameSite=Strict")


PAGES: Final = (
    Page(path="/more", scope="read", handler=more),
    Page(path="/display", scope="read", handler=display, form=Display),
)
