"""The options of commands that serve over HTTP: where to listen, and with which certificate."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import click

PORT: Final = 8_321
"""Where `remit mcp` listens."""


class ListenOptions(NamedTuple):
    """Where to listen for clients over HTTP."""

    host: str
    port: int
    known_as: tuple[str, ...]
    access_log: str
    """The file that a line for each request is appended to; `-` is stderr, empty is no log."""
    flags: dict[str, Any]
    """Settings that the command line stands for."""


def listening_options(port: int, when: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The options of a command that listens, at `port` by default; it is given them as `listening`.

    `when` begins the help of each.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def command(
            *args: Any,
            host: str,
            port: int,
            known_as: tuple[str, ...],
            access_log: str | None,
            tls_cert: str | None,
            tls_key: str | None,
            without_tls: bool,
            **options: Any,
        ) -> Any:
            flags = {
                "serve.tls_cert": tls_cert,
                "serve.tls_key": tls_key,
                "serve.without_tls": without_tls or None,
            }
            listening = ListenOptions(host, port, known_as, access_log or "", flags)
            return function(*args, listening=listening, **options)

        for option in reversed(_options(port, when)):
            command = option(command)
        return command

    return decorate


def _options(port: int, when: str) -> list[Callable[[Callable[..., Any]], Callable[..., Any]]]:
    def text(sentence: str) -> str:
        return f"{when}{sentence[0].lower()}{sentence[1:]}" if when else sentence

    numbers = click.IntRange(0, 65_535)
    return [
        click.option(
            "--host", metavar="ADDRESS", default="127.0.0.1", help=text("The address to listen on. Default: 127.0.0.1.")
        ),
        click.option(
            "--port",
            metavar="N",
            type=numbers,
            default=port,
            help=text(f"The port to listen on; 0 picks a free one. Default: {port}."),
        ),
        click.option(
            "--known-as", metavar="NAME", multiple=True, help=text("Another host name that clients use; repeatable.")
        ),
        click.option(
            "--tls-cert", metavar="FILE", help=text("Serve HTTPS with this certificate: a PEM file with its chain.")
        ),
        click.option("--tls-key", metavar="FILE", help=text("The certificate's key, if it is in a file of its own.")),
        click.option(
            "--without-tls",
            is_flag=True,
            help=text("Listen beyond this machine without TLS, behind a proxy that serves HTTPS."),
        ),
        click.option(
            "--access-log", metavar="FILE", help=text("Append a JSON line for each request to FILE; - is stderr.")
        ),
    ]
