"""References to our own environment: `${NAME}`, `${env:NAME}`, `${NAME:-default}`; `$${` is a literal `${`.

`${keyring:NAME}` refers to a secret in the keyring of the system.

They are replaced when a server is connected and not when the settings are loaded, so that a variable that is not set
fails that server alone, and nothing that is loaded holds a secret that was kept out of the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from remit.errors import SettingsError
from remit.regex import regex
from remit.settings.mcp import McpServer

KEYRING: Final = "${keyring:"
"""The beginning of a reference to the keyring."""
_PIECE: Final = regex(
    r"\$\$\{|\$\{keyring:(?P<secret>[\w.@/-]+)\}|\$\{(?:env:)?(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^}]*))?\}|\$\{",
    re.ASCII,
)
_SERVICE: Final = "remit"
"""The service of the keyring under which secrets are stored for Remit; those of other programs are not read."""
_UNSENDABLE: Final = regex(r"[\r\n\0]")
"""Characters that would end a header."""


def expanded(server: McpServer, environ: Mapping[str, str]) -> McpServer:
    """The server with every reference in command, env, url, headers and oauth replaced.

    Raises SettingsError, which names the server and the variable and quotes no value.
    """
    who = f"MCP server {server.name}"

    url = expand(server.url, environ, who)
    if url and not url.startswith(("https://", "http://")):
        raise SettingsError(
            f"{who}: its url is not one of http or https", remedy="Correct the variable that it refers to."
        )
    return msgspec.structs.replace(
        server,
        command=tuple([_startable(expand(word, environ, who), who) for word in server.command]),
        env={name: _startable(expand(text, environ, who), who) for name, text in server.env.items()},
        url=sendable(url, f"{who}: its url"),
        oauth=server.oauth
        and {name: expand(text, environ, f"{who}: oauth {name}") for name, text in server.oauth.items()},
        headers={
            name: sendable(expand(text, environ, who), f"{who}: header {name}") for name, text in server.headers.items()
        },
    )


def expand(text: str, environ: Mapping[str, str], who: str) -> str:
    """The text with its references replaced. Raises SettingsError for a variable or a secret that there is not."""

    def value(match: re.Match[str]) -> str:
        name = match["name"]
        if match[0] == "$${":
            return "${"
        if match["secret"] is not None:
            return _secret(match["secret"], who)
        if name is None:
            raise SettingsError(
                f"{who}: a `${{` does not name a variable", remedy="Write ${NAME}, or $${ for a plain ${."
            )
        if match["default"] is not None:
            return environ.get(name) or match["default"]
        if name not in environ:
            raise SettingsError(
                f"{who} needs the environment variable {name}, which is not set",
                remedy=f"Set {name} where Remit runs, or give a default behind the name, as in ${{NAME:-default}}.",
            )
        return environ[name]

    return _PIECE.sub(value, text)


def _secret(name: str, who: str) -> str:
    """Return a secret of the system's keyring, which may ask the person for it. Raises SettingsError."""
    try:
        keyring, errors = import_module("keyring"), import_module("keyring.errors")  # an extra
    except ModuleNotFoundError as error:
        msg = f"{who} needs {name} of the keyring, and {error.name} is not installed"
        raise SettingsError(msg, remedy="Install it: pip install 'remit[keyring]'") from error
    try:
        value = keyring.get_password(_SERVICE, name)
    except errors.NoKeyringError as error:
        msg = f"{who} needs {name} of the keyring, and there is no keyring here"
        remedy = "Name a backend in PYTHON_KEYRING_BACKEND, or take the secret from the environment: ${NAME}."
        raise SettingsError(msg, remedy=remedy) from error
    except Exception as error:  # backends are others', and raise what they like
        msg = f"{who} needs {name} of the keyring, which does not give it: {type(error).__name__}"
        raise SettingsError(msg, remedy="Unlock the keyring, or allow Remit to read it.") from error
    if value is None:
        remedy = f"Store it: keyring set {_SERVICE} {name}"
        raise SettingsError(f"{who} needs {name} of the keyring, which is not there", remedy=remedy)
    return str(value)


def encrypting_keyring() -> Any | None:
    """Return the keyring of the system; None if no keyring works, or it keeps plain text."""
    with suppress(Exception):  # the library is an extra; a backend raises what it likes where it cannot be used
        backend = import_module("keyring").get_keyring()
        return backend if backend.priority >= 1 else None
    return None


def literal(text: str) -> str:
    """Return what of the text stands there itself: without references, but with their defaults."""
    return _PIECE.sub(lambda match: "${" if match[0] == "$${" else match["default"] or "", text)


def variables(text: str) -> list[str]:
    """The variables that the text cannot do without, in order."""
    return [match["name"] for match in _PIECE.finditer(text) if match["name"] and match["default"] is None]


def is_sound(text: str) -> bool:
    """Return whether each `${` in a text begins a reference, or stands for itself."""
    return not any(match[0] == "${" for match in _PIECE.finditer(text))


def _startable(text: str, who: str) -> str:
    if "\0" in text:
        raise SettingsError(f"{who}: its command or env contains a NUL", remedy="Correct it or its variable.")
    return text


def sendable(text: str, what: str) -> str:
    """The text, if a header can carry it. Raises SettingsError that names `what` and quotes no value."""
    if _UNSENDABLE.search(text):
        raise SettingsError(f"{what} has a line break or NUL in it", remedy="Correct it, or the variable behind it.")
    return text


def headers_by(text: str) -> dict[str, str]:
    """Return the headers that a variable names as OpenTelemetry's do: `name=value,…`, with `%20` for a blank."""
    pairs = (pair.partition("=") for pair in text.split(",") if "=" in pair)
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs}
