"""The row of a coding agent that is known by its command line.

It says with which words the program is started in each mode, what it finds in its home, how a line of its output
counts, and which files of a repository it would start programs by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from remit.work.executors.port import Usage
from remit.work.workflow import Mode

SERVER: Final = "remit"
"""Remit's tools, as the agents know them."""


RESUME: Final = "{resume}"
"""The place of the words of `Cli.resume`."""


class Model(NamedTuple):
    """The model that an agent speaks to."""

    name: str
    """Empty: the agent's own choice."""
    url: str
    """Empty: its maker's."""
    key: str


class Home(NamedTuple):
    """The circumstances that the files of a home are written for."""

    model: Model
    mode: Mode
    """`governed`: its own tools are off; `ask`: it asks before it uses them."""
    tools: tuple[str, ...] = ()
    """The command of Remit's MCP server; empty: the agent has none, or is told of it in another way."""


class Tally:
    """Sums up an agent's words up to now."""

    def __init__(self) -> None:
        self.ended = False
        """Whether the event that ends a turn was said."""
        self.fault = ""
        self.denied = 0
        self.session = ""
        self.usage = Usage()

    def add(self, found: Any, tokens_in: str, tokens_out: str, cost: float = 0.0) -> None:
        """Count what a step took, by the names that the agent has for it."""
        counts = found if isinstance(found, dict) else {}
        self.usage = Usage(
            input_tokens=self.usage.input_tokens + int(counts.get(tokens_in) or 0),
            output_tokens=self.usage.output_tokens + int(counts.get(tokens_out) or 0),
            cost_usd=self.usage.cost_usd + cost,
        )


LINE: Final = "line"
"""The key under which a line that is for people stands in an event."""
Read = Callable[[Tally, dict[str, Any]], str]
"""Takes in an event, a JSON object of one line; returns what is shown of it. A line for people is shown as it is."""


class Cli(NamedTuple):
    """One coding agent."""

    name: str
    version: str
    install: str
    key: str
    """The variable that holds its key."""
    hosts: tuple[str, ...]
    """Where its maker serves its model."""
    args: Mapping[Mode, tuple[str, ...]]
    env: Mapping[str, str]
    """Variables with `{url}`, `{model}`, `{key}` and `{home}` in them; one that would be empty is left out."""
    files: Callable[[Home], Mapping[str, str]]
    """The files of its home."""
    read: Read
    starts: tuple[str, ...]
    """Patterns of files in a repository by which it starts programs."""
    closed: bool
    """Whether its flags keep it from that."""
    resume: tuple[str, ...] = ()
    """The words for continuing a conversation, with `{session}` in them; they stand where `args` have `RESUME`."""
    conversation: str = ""
    """The pattern of a conversation's file in its home, with `{session}` and `{place}`; empty: none can go on."""
    place: Callable[[Path], str] = lambda _: ""
    """Its name for the folder that it works in, where conversations are kept by it."""
