"""The files that pages are made of: pinned, small, and without what would defeat escaping or the policy."""

from __future__ import annotations

import gzip
import hashlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import remit.pages
from remit.pages.renderer import FOLDER, asset, served

pytestmark = pytest.mark.slow

TEMPLATES = sorted(Path(remit.pages.__file__).parents[1].glob("*/templates/*.html"))
HTMX = "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130"
"""SHA-256 of dist/htmx.min.js in htmx.org 4.0.1, as npm has it."""
ATTRIBUTES = {"hx-get", "hx-target", "hx-select", "hx-swap", "hx-push-url", "hx-ignore"}


def test_htmx_is_the_one_that_was_looked_at() -> None:
    assert hashlib.sha256((FOLDER / "htmx.min.js").read_bytes()).hexdigest() == HTMX


def test_assets_are_served_under_their_content_alone() -> None:
    found = asset("console.css")
    assert served(found.path) is found
    assert served("/static/0/console.css") is None
    assert served("/static/entry.py") is None


def test_style_and_script_are_small() -> None:
    assert len(gzip.compress(asset("console.css").data)) < 12_000
    script = gzip.compress(asset("console.js").data + asset("htmx.min.js").data)
    assert len(script) < 18_000


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_templates_hold_nothing_that_escapes_escaping_or_the_policy(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"\|\s*(?:safe|e|escape|tojson|xmlattr|urlize)\b|Markup|autoescape", text) == []
    assert re.findall(r"\sstyle=|<style|<script(?![^>]*\ssrc=)|javascript:|\son[a-z]+=|https?://", text) == []
    assert set(re.findall(r"\bhx-[a-z-]+", text)) <= ATTRIBUTES
    assert re.findall(r"=\{\{", text) == [], "an attribute's value stands in quotes"


@pytest.mark.parametrize("module", ["remit", "remit.pages.table", "remit.pages.part"])
def test_no_template_engine_is_loaded_before_the_first_page(module: str) -> None:
    code = f"import sys, {module}; sys.exit('jinja2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
