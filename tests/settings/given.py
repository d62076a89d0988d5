"""A value of every setting for each source: what the file, the environment and the flags give it."""

from __future__ import annotations

import re
from typing import Any, Final

import remit.wiring.sections  # noqa: F401 - declares the settings of the parts
from remit.settings import documented

Three = tuple[Any, Any, Any]
_RANGE: Final = re.compile(r"an integer from (\d+) to \d+")


def of_type(words: str) -> Three | None:
    """Three values of a setting, by its type in words; None: its form needs values of its own."""
    if whole := _RANGE.fullmatch(words):
        least = int(whole[1])
        return least, least + 1, least + 2
    if words.startswith("one of "):
        first, second, *_ = words.removeprefix("one of ").split(", ")
        return first, second, first
    plain: dict[str, Three] = {
        "text": ("a", "b", "c"),
        "true or false": (True, False, True),
        "a list of non-empty texts": (["a"], ["b", "c"], ["d"]),
        "a list of tables": ([{"name": "a"}], [{"name": "b"}], []),
    }
    return plain.get(words)


OWN: Final[dict[str, Three]] = {
    "web.searxng_url": ("http://a", "http://b", "http://c"),
    "web.folder_url": ("http://a", "http://b", "http://c"),
    "dbos.queue": ("one", "two", "three"),
    "jobs.quotas": ({"principal": 1}, {"recipe": 2}, {"label:team": 3}),
    "jobs.share": ("principal", "recipe", "label:team"),
    "mcp.servers": ([{"name": "a"}], [{"name": "b"}], []),
    "mcp.clients": ([{"principal": "a"}], [{"principal": "b"}], []),
    "limits.tools": ({"web.*": {"rate": "1/s"}}, {"mail.*": {"rate": "9/d"}}, {}),
    "secrets.named": ({"A": {"env": "X"}}, {"B": {"keyring": "Y", "tools": ["b.*"]}}, {}),
    "runners.entries": (
        [{"name": "a", "serves": ["a.*"]}],
        [{"name": "b", "serves": ["b.*"]}],
        [{"name": "c", "serves": ["c.*"]}],
    ),
    "skills.named": ({"a": {"enabled": False}}, {"b": {"enabled": True}}, {}),
    "recorder.key_command": (["a"], ["b"], ["c"]),
    "recorder.command": (["a"], ["b"], ["c"]),
    "recorder.url": ("https://a.example", "https://b.example", "https://c.example"),
    "recorder.token": ("${A}", "${B}", "${C}"),
    "recorder.witness": ("https://a.example", "https://b.example", "https://c.example"),
    "recorder.stamp_url": ("https://a.example", "https://b.example", "https://c.example"),
    "recorder.stamp_roots": ("/a", "/b", "/c"),
    "login.grants": ([{"group": "a"}], [{"group": "b"}], []),
    "login.client_secret": ("${A}", "${B}", "${C}"),
    "audit.key": ("${A}", "${B}", "${C}"),
    "audit.anchor_url": ("http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:3"),
    "audit.key_command": (["a"], ["b"], ["c"]),
    "telemetry.otlp_url": ("https://a.example", "https://b.example", "https://c.example"),
    "telemetry.headers": ({"a": "…"}, {"b": "…"}, {"c": "…"}),
    "serve.public_url": ("https://a.example", "https://b.example", "https://c.example"),
    "clients.entries": ([{"principal": "a"}], [{"principal": "b"}], []),
    "mcp.servers_json": ("[]", '[{"name":"b"}]', '[{"name":"c"}]'),
    "mcp.server_args_json": ("…", "…", "…"),
    "mcp.server_args": ("…", "…", "…"),
    "models.openai_url": ("http://a", "http://b", "http://c"),
    "models.anthropic_url": ("http://a", "http://b", "http://c"),
    "models.google_url": ("http://a", "http://b", "http://c"),
    "models.ollama_url": ("http://a", "http://b", "http://c"),
    "models.cache": ("off", "short", "long"),
    "models.prices": ([{"model": "a"}], [{"model": "b"}], []),
    "policy.rules": ([{"effect": "ask"}], [{"effect": "deny"}], []),
    "policy.groups": ({"a": ["x"]}, {"b": ["y"]}, {}),
    "policy.pots": ({"a": {"per": "day"}}, {"b": {"per": "week"}}, {}),
    "policy.tests": ([{"expect": "ask"}], [{"expect": "deny"}], []),
}
"""The values of settings whose form is narrower than their type."""


MASKED = {"web.searxng_key", "web.brave_key", "web.serper_key"}
"""Settings whose values are never shown."""
PATHS = {
    "app.modules",
    "browser.program",
    "confirm.allowed_signers",
    "fs.roots",
    "journal.key_file",
    "journal.url",
    "mcp.pins_file",
    "recorder.file",
    "recorder.key",
    "sandbox.bwrap",
    "sandbox.folder",
    "sandbox.packages",
    "serve.tls_cert",
    "skills.folders",
    "serve.tls_key",
}

VALUES: Final[dict[str, Three]] = {
    setting.key: values
    for setting in documented()
    if setting.key not in PATHS and (values := OWN.get(setting.key) or of_type(setting.type)) is not None
}
"""Three values of every setting that is no path."""
