"""A job in which everything happens that formats have a place for, and the account that its package gives."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, Final, Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from remit import Code, Options, Remit, Run, recipe, tool
from remit.errors import ProviderError
from remit.journal.signing_key import private_keys
from remit.parts.audit.formats.account import ExportAccount
from remit.parts.audit.formats.keys import OperatorSigner, PublicKey
from remit.parts.audit.package import write_package
from remit.parts.recorder.keys import RecordSigner as RecorderSigner
from remit.parts.recorder.publisher import Publisher
from remit.parts.recorder.recorder import LogRecorder, RecorderTerms
from remit.parts.recorder.settings import RecorderSettings
from tests.opened import OpenRemit

KEY: Final = """\
-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIBERERERERERERERERERERERERERERERERERERERERER
-----END PRIVATE KEY-----
"""
"""For tests only."""
FLAGS: Final[dict[str, Any]] = {
    "models.default": "scripted:says.yaml",
    "policy.rules": [
        {"effect": "deny", "tools": ["shop.never"]},
        {"id": "twice", "effect": "deny", "tools": ["shop.often"], "limit": {"calls": 1, "per": "job"}},
        {"effect": "allow", "tools": ["shop.often", "shop.lost", "model.*"]},
    ],
}


@tool("shop.look", level="L0")
def look(text: str) -> dict[str, str]:
    """Look something up."""
    return {"found": text}


@tool("shop.pay", level="L1")
def pay(cents: int) -> str:
    """Pay somebody."""
    return f"paid {cents}"


@tool("shop.never")
def never(cents: int) -> str:
    """Do what nobody may."""
    return f"did {cents}"


@tool("shop.often")
def often(cents: int) -> str:
    """Do what may be done once."""
    return f"did {cents}"


@tool("shop.lost")
def lost(cents: int) -> None:
    """Pay somebody, and never be heard of."""
    raise ProviderError(f"the line broke at {cents}", cause=Code.ConnectionError)


@recipe("errands")
async def errands(run: Run, note: str = "milk", *, waits: bool = False) -> list[Any]:
    """Ask a model, look, pay twice, and do what is refused."""
    await run.model("What is to be done?")
    await run.call("shop.look", {"text": note})
    calls: list[tuple[str, dict[str, Any]]] = [
        ("shop.never", {"cents": 1}),
        ("shop.look", {"text": 5}),
        ("shop.often", {"cents": 2}),
        ("shop.often", {"cents": 3}),
        ("shop.pay", {"cents": 500}),
        ("shop.pay", {"cents": 900}),
        *([("shop.pay", {"cents": 1_000})] if waits else []),
    ]
    return [(await run.attempt(name, args)).code for name, args in calls]


GIVEN: Final[Mapping[str, Any]] = {"tools": [look, pay, never, often, lost], "recipes": [errands]}


def remit_of(remit_in: OpenRemit, folder: Path, **given: Any) -> Remit:
    """A Remit with the errands' tools, rules and model."""
    (folder / "says.yaml").write_text("[{say: buy milk}]")
    return remit_in(**GIVEN, flags={**FLAGS, **given.pop("flags", {})}, **given)


async def ran(remit_in: OpenRemit, folder: Path, *, waits: bool = False, recorded: bool = False, **options: Any) -> str:
    """The job, with its first payment approved and its second one denied; it has ended, or waits for a third.

    If `recorded`, a recorder signs before and after each answer, and ends its session with the job.
    """
    answers: list[Literal["approve", "deny"]] = ["approve", "deny"]
    async with remit_of(remit_in, folder) as remit:
        recorder = recorder_of(remit, folder) if recorded else None
        if recorder is not None:
            await recorder.look(at_once=True)
        job = await remit.start(errands(waits=waits), **options)
        async for question in remit.questions(job):
            if recorder is not None:
                await recorder.look(at_once=True)
            if not answers:
                break
            await remit.service.confirmations.decide(question.confirmation, answers.pop(0), by="carol")
        if recorder is not None:
            await recorder.cover()
            await recorder.end()
    return str(job.id)


def recorder_of(remit: Remit, folder: Path, origin: str = "log.example/agents") -> LogRecorder:
    """A recorder of the journal, with a key of its own."""
    journal, key = remit.runtime.journal, Ed25519PrivateKey.from_private_bytes(b"7" * 32)
    terms = RecorderTerms(origin=origin, every_events=1_000, every_seconds=60, settings=b"{}")
    publisher = Publisher(journal, RecorderSettings(), {}, folder)
    return LogRecorder(journal, terms, [RecorderSigner(terms.origin, key, 1)], publisher)


async def package_of(remit_in: OpenRemit, folder: Path, job: str) -> bytes:
    """The job's package."""
    package = BytesIO()
    async with remit_of(remit_in, folder, work=False) as remit:
        await write_package(remit.runtime.journal, job, package)
    return package.getvalue()


async def account_of(remit_in: OpenRemit, folder: Path, job: str) -> ExportAccount:
    """The account that the job's package gives."""
    return ExportAccount(BytesIO(await package_of(remit_in, folder, job)))


def key_in(folder: Path) -> Path:
    """A file with the key."""
    place = folder / "key.pem"
    place.write_text(KEY)
    place.chmod(0o600)
    return place


def signed(folder: Path) -> tuple[OperatorSigner, dict[str, PublicKey]]:
    """Who signs, and the keys that others check with."""
    by = OperatorSigner(private_keys(key_in(folder).read_bytes(), "key")[0])
    return by, {by.name: PublicKey(by.public)}


def subject() -> Options:
    """Options of a job about a customer."""
    return Options(subject="customer-7")
