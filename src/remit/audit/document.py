"""One HTML file that needs nothing else: for people who open it from a mail, in years, without Remit or a network.

Every value is escaped and made visible by the templates of the console. The policy of the file allows the style and the
script that stand in it, by their digests, and nothing else: no request, no form, no other script.
"""

from __future__ import annotations

import html
from base64 import b64encode
from datetime import UTC
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from remit.pages.rendering import Shell, render
from remit.pages.text import visible

if TYPE_CHECKING:
    from remit.pages.page import View

_FOLDER: Final = Path(__file__).parent / "static"
_HEAD: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '{}'; script-src '{}'; \
base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer"><title>{} · Remit</title>
<style>{}</style></head><body>
"""


def document(view: View, now: int) -> bytes:
    """Return a view as a file of its own, made at the moment `now`."""
    shell = Shell(
        items=(), links=(), who="", csrf="", can=frozenset(), now=now, zone=UTC, here="", listens=False, again=False
    )
    style, script = _text("document.css"), _text("document.js")
    head = _HEAD.format(_source(style), _source(script), html.escape(visible(view.title)), style)
    return b"".join((head.encode(), render(view, shell), f"\n<script>{script}</script></body></html>\n".encode()))


@cache
def _text(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8").strip()


def _source(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
