"""The arguments and results: what the browser tools take and give."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from remit.tools.provider import Url

_CONTENT: dict[str, Any] = {"x-remit-role": "content"}
Ref = Annotated[
    str,
    Meta(
        pattern=r"^p[0-9]{1,6}:(f[0-9]{1,6})?e[0-9]{1,9}$",
        max_length=40,
        description="An element, as the last snapshot of its page names it, such as `p1:e5`.",
        extra_json_schema=_CONTENT,
    ),
]
PageName = Annotated[
    str,
    Meta(
        pattern=r"^(p[0-9]{1,6})?$",
        max_length=10,
        description="A page, such as `p2`; empty: the one that was used last.",
        extra_json_schema=_CONTENT,
    ),
]
Dialog = Annotated[
    Literal["dismiss", "accept"], Meta(description="What dialogs of the page are answered with meanwhile.")
]


class NavigateArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where to go."""

    url: Url
    page: PageName = ""
    new_page: Annotated[bool, Meta(description="Whether to open it in another page, and keep this one.")] = False


class PageArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which page."""

    page: PageName = ""


class CloseArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nothing: it is the browser of this job or session."""


class SnapshotArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to show of which page."""

    page: PageName = ""
    ref: Ref | None = None


class ClickArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to click."""

    ref: Ref
    double: bool = False
    button: Literal["left", "middle", "right"] = "left"
    dialogs: Dialog = "dismiss"


class TypeArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to type where; it takes the place of what is there."""

    ref: Ref
    text: Annotated[str, Meta(max_length=100_000, extra_json_schema=_CONTENT)] | None = None
    secret: (
        Annotated[
            str,
            Meta(
                max_length=100,
                description="Instead of `text`: a name in `browser.secrets`. No password is typed otherwise.",
                extra_json_schema=_CONTENT,
            ),
        ]
        | None
    ) = None
    submit: Annotated[bool, Meta(description="Whether to press Enter afterwards.")] = False


class PressArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A key to press."""

    key: Annotated[
        str,
        Meta(min_length=1, max_length=40, description="Such as Enter, Tab, Escape, ArrowDown, End, a or Control+a."),
    ]
    page: PageName = ""
    dialogs: Dialog = "dismiss"


class SelectArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which options of a list to choose."""

    ref: Ref
    options: Annotated[
        list[Annotated[str, Meta(max_length=1_000)]],
        Meta(max_length=100, description="Labels or values; others are no longer chosen.", extra_json_schema=_CONTENT),
    ]


class WaitArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to wait for: a text, its end, or, without both, the downloads that began."""

    text: Annotated[str, Meta(max_length=1_000, description="A text to appear.", extra_json_schema=_CONTENT)] = ""
    gone: Annotated[str, Meta(max_length=1_000, description="A text to vanish.", extra_json_schema=_CONTENT)] = ""
    seconds: Annotated[int, Meta(ge=1, le=30)] = 10
    page: PageName = ""


class ScreenshotArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to photograph."""

    page: PageName = ""
    ref: Ref | None = None
    full_page: Annotated[bool, Meta(description="Whether to take the whole page, as far as 10,000 pixels.")] = False


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was kept; its bytes are found by their digest."""

    path: str
    bytes: int
    sha256: str
    media_type: str


class State(msgspec.Struct, frozen=True, kw_only=True):
    """The page after an act."""

    page: Annotated[str, Meta(description="Its name; refs begin with it.")]
    url: str
    title: str
    notes: Annotated[
        list[str], Meta(description="What happened beside: dialogs, pages that opened, requests that were refused.")
    ] = []
    artifacts: Annotated[list[Artifact], Meta(description="Downloads that ended, or the screenshot.")] = []


class NavigateResult(State, frozen=True, kw_only=True):
    """The page that was opened."""

    status_code: Annotated[int, Meta(description="Of its HTTP answer; 0: there was none, such as for a download.")]


class SnapshotResult(State, frozen=True, kw_only=True):
    """A page as a tree of roles, names and refs."""

    snapshot: str
    missing: Annotated[int, Meta(description="Characters that were cut off at the end; take the snapshot of a part.")]


class ExtractResult(State, frozen=True, kw_only=True):
    """The text of a page as it is now."""

    text: str
    truncated: bool


class CloseResult(msgspec.Struct, frozen=True, kw_only=True):
    """How the browser ran."""

    closed: Annotated[bool, Meta(description="Whether there was one.")]
    receipt: Annotated[Any, Meta(description="How it was isolated, what it reached and used; null: unknown.")] = None


TAKES: Final[dict[str, tuple[type[msgspec.Struct], type[msgspec.Struct], str]]] = {
    "navigate": (
        NavigateArgs,
        NavigateResult,
        "Open a page in the browser. See what is on it with browser.snapshot.",
    ),
    "snapshot": (SnapshotArgs, SnapshotResult, "Show a page as a tree with a ref for each element."),
    "click": (ClickArgs, State, "Click an element of the last snapshot."),
    "type": (TypeArgs, State, "Type a text, or a secret that you do not see, into a field."),
    "press": (PressArgs, State, "Press a key where the focus is."),
    "select": (SelectArgs, State, "Choose options of a list."),
    "wait_for": (WaitArgs, State, "Wait for a text to appear or vanish, or for downloads to end."),
    "extract": (PageArgs, ExtractResult, "Read all the text of a page as it is now."),
    "screenshot": (ScreenshotArgs, State, "Photograph a page or an element, as evidence."),
    "close": (CloseArgs, CloseResult, "Close the browser and forget its cookies."),
}
"""The shapes of each tool: what it takes and gives, and what it is for."""
