"""A project with skills, tools whose calls are written down, and a model that says what a script says."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from remit import Remit, tool
from remit.journal.kinds import CommandStarted, JobCreated, Payload, ToolInvocationStarted, decode
from remit.models.message import Message, ToolMessage
from remit.models.message import decode as message_of
from remit.parts.agents.recipes import agent
from remit.service.options import Options
from remit.settings import Settings, load
from tests.patience import PATIENCE_S

SENT: Final[list[tuple[str, str]]] = []
ALLOW: Final = {"id": "all", "effect": "allow", "tools": ["mail.*", "notes.*"]}


@tool("mail.send", level="L1")
async def send(to: str, body: str) -> str:
    """Send a mail."""
    SENT.append((to, body))
    return "sent"


@tool("notes.read", level="L0")
async def read(name: str) -> str:
    """Read a note."""
    return f"the note {name}"


@tool("notes.write", level="L1")
async def write(text: str) -> str:
    """Write a note."""
    SENT.append(("note", text))
    return "written"


@tool("secret.key", level="L0")
async def key() -> str:
    """Give the key."""
    SENT.append(("key", ""))
    return "sk-1234567890"


TOOLS: Final = (send, read, write, key)


def skill(
    folder: Path,
    name: str,
    body: str = "Do it.",
    *,
    about: str = "A skill.",
    files: dict[str, str] | None = None,
    **more: str,
) -> Path:
    """Write a SKILL.md; `tools`, `run_types` and `risk` are ours."""
    named = {"tools": "remit-required-tools", "run_types": "remit-run-types", "risk": "remit-risk"}
    metadata = "".join(f"\n  {named[field]}: {value}" for field, value in more.items())
    head = f"name: {name}\ndescription: {about}" + (f"\nmetadata:{metadata}" if metadata else "")
    place = folder / name
    for path, text in {"SKILL.md": f"---\n{head}\n---\n\n{body}\n", **(files or {})}.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text, encoding="utf-8")
    return place


def settings(
    folder: Path, *steps: Any, toml: str = "[skills]\nfolders = ['skills']\n", rules: Sequence[Any] = (ALLOW,)
) -> Settings:
    """The settings of a project; with steps of a script, if there are any."""
    if steps:
        (folder / "script.yaml").write_bytes(msgspec.json.encode(steps))
    (folder / "remit.toml").write_text(toml, encoding="utf-8")
    flags = {"models.default": "scripted:script.yaml", "journal.url": str(folder / "j.db")}
    found = load(cwd=folder, env={"HOME": str(folder / "home")}, flags=flags)
    return msgspec.structs.replace(found, policy=msgspec.structs.replace(found.policy, rules=tuple(rules)))


def opened(given: Settings, **more: Any) -> Remit:
    """A process of the project."""
    return Remit(settings=given, tools=TOOLS, **more)


def call(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """A step of a script that wants these calls."""
    return {"call": [{"tool": name, "args": args} for name, args in calls]}


class Ended(msgspec.Struct, frozen=True):
    """What an agent came to."""

    job: str
    answer: Any
    payloads: list[Payload]
    sent: list[Message]

    @property
    def results(self) -> list[str]:
        """What the model was told of its calls, in their order."""
        return [block.text for message in self.sent for block in message.blocks if isinstance(block, ToolMessage)]

    @property
    def created(self) -> JobCreated:
        """How the job began."""
        created = self.payloads[0]
        assert isinstance(created, JobCreated)
        return created

    def called(self) -> list[str]:
        """The tools that were called."""
        return [one.tool_name for one in self.payloads if isinstance(one, ToolInvocationStarted)]


async def record(remit: Remit, job: str) -> tuple[list[Payload], list[Message]]:
    """Return what is recorded of a job, and what its models were sent."""
    journal = remit.runtime.journal
    payloads = [decode(event.kind, event.data) for event in await journal.read(f"job/{job}")]
    kept = [one for payload in payloads if isinstance(payload, CommandStarted) for one in payload.added]
    bodies = [await journal.value(one.body, one.body_blob) for one in kept]
    return [one for one in payloads if one is not None], [message_of(body) for body in bodies if body is not None]


async def run(given: Settings, *skills: str, replay: bool = True, **asked: Any) -> Ended:
    """Run an agent under skills to its end; its replay agrees."""
    async with opened(given) as remit:
        bound = agent(**{"task": "Do it.", **asked})
        job = await remit.start(bound, options=Options(skills=skills))
        ended = await asyncio.wait_for(job.result(), PATIENCE_S)
        if replay:
            assert (await remit.service.jobs.replay(job.id)).verdict == "same"
        return Ended(job.id, ended, *await record(remit, job.id))
