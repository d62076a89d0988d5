"""Finds literal secrets in a server's table and puts references to the environment in their place."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from remit.errors import UsageError
from remit.redact import mask
from remit.regex import regex
from remit.settings.expansion import literal
from remit.settings.pictures import is_opaque

_SCHEME: Final = regex(r"\s*(?:(?:bearer|basic|token|apikey)\s+)?", re.IGNORECASE)
_KEY: Final = regex(r"(?:^|[_.-])(?:key|pat|auth|pass|creds?|sid)$", re.IGNORECASE)
_NO_SECRET: Final = regex(r"(?:true|false|yes|no|on|off|none|null|[0-9]{1,5})?", re.IGNORECASE)
_PLACE_OF: Final = regex(r"[_-](?:file|path|dir|url|uri|host|name)$", re.IGNORECASE)
_WORDS: Final = regex(r"[^A-Za-z0-9]+")


class Replaced(NamedTuple):
    """A secret that a reference stands for now."""

    place: str
    """Where it stood, such as `env API_KEY`."""
    variable: str


def looks_secret(name: str, text: str) -> bool:
    """Return whether a value of this name holds a secret itself; references to the environment do not."""
    bare = _SCHEME.sub("", literal(text), count=1).strip()
    if _NO_SECRET.fullmatch(bare):
        return False
    if is_opaque(bare) or is_opaque(literal(text)):
        return True
    named = f"{name}={bare}"
    return not _PLACE_OF.search(name) and (_KEY.search(name) is not None or mask(named) != named)


class SecretReplacer:
    """Replaces secrets by references, over all servers of one command; a variable never stands for two of them."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}
        self._replaced: list[Replaced] = []

    def table(self, server: str, table: dict[str, Any]) -> tuple[dict[str, Any], list[Replaced]]:
        """A checked table without literal secrets, and what was replaced."""
        self._replaced = []
        cloaked = dict(table)
        if "command" in table:
            first, *args = table["command"]
            before = (first, *args)
            cloaked["command"] = [first, *(self._argument(server, *pair) for pair in zip(before, args, strict=False))]
        if "url" in table:
            cloaked["url"] = self._url(server, table["url"], "url")
        for key in ("env", "headers"):
            if key in table:
                what = "header" if key == "headers" else key
                prefix = "" if key == "env" else server
                cloaked[key] = {
                    name: self._value(server, prefix, name, text, what) for name, text in table[key].items()
                }
        return cloaked, self._replaced

    def _value(self, server: str, prefix: str, name: str, text: str, what: str) -> str:
        if not looks_secret(name, text):
            return text
        scheme = _SCHEME.match(text)
        head = scheme[0] if scheme else ""
        return head + self._reference(server, variable_name(prefix, name), text[len(head) :], f"{what} {name}")

    def _argument(self, server: str, before: str, text: str) -> str:
        option = before.lstrip("-") if before.startswith("-") else ""
        if is_url(text):
            return self._url(server, text, "arguments")
        for separator in ("=", ":"):
            name, has_separator, value = text.partition(separator)
            if has_separator and name.strip() and looks_secret(name.strip(), value):
                return f"{name}{separator}" + self._value(server, server, name.strip(" -"), value, "argument")
        if option and "=" not in option and not text.startswith("-") and looks_secret(option, text):
            return self._value(server, server, option, text, "argument")
        masked = mask(text)
        if masked == text and not is_opaque(text):
            return text
        return self._reference(server, variable_name(server, "ARGUMENT"), text, "arguments")

    def _url(self, server: str, url: str, what: str) -> str:
        """A URL, whose password, query and path may hold secrets."""
        if not is_url(url):
            opaque = is_opaque(literal(url))
            return self._reference(server, variable_name(server, "URL"), url, what) if opaque else url
        parts = urlsplit(url)

        def reference(name: str, value: str) -> str:
            return self._reference(server, variable_name(server, "URL", name), value, f"{what} ({name.lower()})")

        netloc = _without_login(parts.netloc, reference)
        path = "/".join(reference("PATH", part) if is_opaque(literal(part)) else part for part in parts.path.split("/"))
        query = "&".join(_without_secret(pair, reference) for pair in parts.query.split("&"))
        return urlunsplit(parts._replace(netloc=netloc, path=path, query=query))

    def _reference(self, server: str, variable: str, value: str, place: str) -> str:
        name, number = variable, 1
        while self._values.setdefault(name, value) != value:
            prefixed = variable_name(server, variable)
            name = prefixed if number == 1 and prefixed != variable else f"{variable}_{number + 1}"
            number += 1
        self._replaced.append(Replaced(place, name))
        return f"${{{name}}}"


def refuse_secrets(server: str, table: dict[str, Any], so: str) -> None:
    """Raise UsageError, with `so` what follows, if a table has literal secrets; the words do not quote them."""
    _, secrets = SecretReplacer().table(server, table)
    if secrets:
        raise UsageError(
            f"these values look like secrets: {', '.join(secret.place for secret in secrets)}; {so}",
            remedy="\n".join(
                f"Write '${{{secret.variable}}}' instead, and set {secret.variable} in the environment."
                for secret in secrets
            ),
        )


def is_url(text: str) -> bool:
    """Return whether a text can be taken apart as a URL."""
    try:
        return "://" in text and bool(urlsplit(text).netloc)
    except ValueError:
        return False


def _without_login(netloc: str, reference: Callable[[str, str], str]) -> str:
    login, has_login, host = netloc.rpartition("@")
    if not has_login or not literal(login).strip(":"):
        return netloc
    user, separator, password = login.partition(":")
    if separator:
        return f"{user}:{reference('PASSWORD', password) if literal(password) else password}@{host}"
    return f"{reference('USER', user)}@{host}"


def _without_secret(pair: str, reference: Callable[[str, str], str]) -> str:
    name, has_value, value = pair.partition("=")
    return f"{name}={reference(name, value)}" if has_value and looks_secret(name, value) else pair


def variable_name(*words: str) -> str:
    """A name for an environment variable."""
    name = "_".join(part for word in words for part in _WORDS.split(word) if part).upper()
    return f"_{name}" if name[:1].isdigit() else name or "SECRET"
