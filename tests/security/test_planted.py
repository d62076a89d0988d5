"""Fifty planted secrets are seen in the values that hold them alone: no command, page, export or log shows one."""

from __future__ import annotations

import asyncio
import json
import re
import zipfile
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import aiohttp
import click
import pytest

from remit import Remit
from remit.cli.root import root
from remit.journal.signing_key import make_key
from remit.pages.table import PAGES
from remit.settings import load
from tests.cli.conftest import Project, project
from tests.pages.conftest import serving
from tests.security.planted import SECRETS_BY_NUMBER

__all__ = ["project"]
pytestmark = pytest.mark.slow
MODULE: Final = """
from pathlib import Path
from remit import recipe, tool

@tool("vault.read", level="L0")
def read(texts: dict[str, str], note: str) -> dict:
    "Return what it is given."
    return {"found": list(texts.values()), "note": note}

@tool("vault.fail", level="L0")
def fail(text: str) -> None:
    "Fail with a text."
    raise ValueError(f"cannot use {text}")

@recipe("holds")
async def holds(run, texts: dict[str, str]) -> dict:
    "Give each secret to a tool, alone and with the others, and fail with each."
    await run.call("vault.read", {"texts": texts, "note": "all"})
    for text in texts.values():
        await run.attempt("vault.read", {"texts": {"text": text}, "note": text})
        await run.attempt("vault.fail", {"text": text})
    return texts

@recipe("breaks")
async def breaks(run, text: str) -> None:
    "Fail with a text."
    raise RuntimeError(text)
"""
JOB: Final = "last"
HTML: Final = ((JOB, "--html", "trace.html", "--force"),)
FORMS: Final = ("ael", "in-toto", "receipts", "ocsf", "otlp")
FILES: Final = tuple((JOB, "--format", form, "-o", f"one.{form}") for form in FORMS)
LOOKS: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    "show": ((JOB,), (JOB, "1"), (JOB, "3")), "trace": ((JOB,), (JOB, "--events")), "artifacts": ((JOB,),),
    "replay": ((JOB,),), "verify": ((), (JOB,)), "drift": ((), (JOB,)), "audit": ((), (JOB,), *HTML),
    "diff": ((JOB, JOB),),
    "jobs": ((), ("--text", "Zq39")), "tools": ((), ("vault.read",)), "recipes": ((), ("holds",)), "check": ((),),
    "policy explain": (("vault.read",),), "confirm": ((),), "conversation export": ((JOB,),),
    "golden add": ((JOB, "--to", "golden"),), "export": ((JOB, "-o", "one.zip"), *FILES),
    "retry": ((JOB, "--at", "1"),),
    "fork": ((JOB, "1"),), "decide": ((JOB, "1"),), "signal": ((JOB, "go"),), "cancel": ((JOB,),), "resume": ((JOB,),),
    "journal prune": (("--before", "1d", "--dry-run"),), "journal backup": (("saved.db", "--force"),),
    "erase": (("--subject", "nobody"),), "api": ((),), "completion": (("bash",),),
    "tickets show": (("nothing",),), "work show": (("nothing",),), "skills show": (("nothing",),),
    "mcp show": (("nothing",),), "mcp diff": (("nothing",),), "policy revoke": (("nothing",),),
}  # fmt: skip
"""What commands are given; those that need nothing are run without anything."""
LEFT_OUT: Final = {
    *("init", "run", "chat", "conversation import", "work init", "work issue", "skills new"),  # start something new
    *(
        "serve",
        "worker",
        "mcp serve",
        "mcp wrap",
        "tickets work",
        "work serve",
        "witness",
        "guard serve",
    ),  # run until they are ended
    *("guard serve", "guard ask", "model-gateway", "login"),  # the same
    *("tickets create", "tickets lease", "tickets fill", "tickets block", "tickets release", "tickets retry"),
    *("work decide", "work run", "work switch", "work stop", "work result", "work write", "work late", "work log"),
    *("mcp add", "mcp test", "mcp login", "mcp remove", "mcp import", "mcp pin", "mcp approve", "notify test"),
    *("token new", "token revoke", "trust", "sandbox clean", "skills enable", "skills disable", "skills check"),
    *("journal activate", "journal copy", "journal seal", "recorder key", "recorder sign", "policy backtest"),
}
"""They need what is not here, or change what others look at; nothing of a job passes through them."""
VALUES: Final = frozenset({"input", "args", "result", "value", "found", "texts", "data", "output", "document"})
"""Members of JSON that hold recorded values whole, for programs."""


def commands(group: click.Group = root, words: tuple[str, ...] = ()) -> dict[str, click.Command]:
    """Every command by its words."""
    context, found = click.Context(group), dict[str, click.Command]()
    for name in group.list_commands(context):
        one = group.get_command(context, name)
        assert one is not None
        found |= commands(one, (*words, name)) if isinstance(one, click.Group) else {" ".join((*words, name)): one}
    return found


def without_values(found: Any) -> Any:
    if isinstance(found, dict):
        return {name: without_values(value) for name, value in found.items() if name not in VALUES}
    return [without_values(one) for one in found] if isinstance(found, list) else found


def outside(page: str) -> str:
    """A page without what it shows of recorded values whole, on purpose: input, arguments, results, events."""
    return re.sub(r"(?s)<(pre|textarea)\b.*?</\1>", "", page)


def seen(text: str) -> set[str]:
    return {name for name, secret in SECRETS_BY_NUMBER.items() if secret.core in text}


def texts_of(place: Path) -> dict[str, str]:
    """The texts in a file, by the names that a zip gives them."""
    if not zipfile.is_zipfile(place):
        return {"": place.read_text(encoding="utf-8")}
    with zipfile.ZipFile(place) as package:
        return {name: package.read(name).decode() for name in package.namelist()}


def prepared(project: Project) -> str:
    (project.folder / "vault.py").write_text(MODULE, encoding="utf-8")
    make_key(project.folder / "audit.pem")
    project.configure('[app]\nmodules = ["vault.py"]\n[audit]\nkey = "audit.pem"\n', modules=False)
    for name in ("text1", "text25", "text39"):
        assert project.here("run", "breaks", "--input", json.dumps({"text": SECRETS_BY_NUMBER[name].text})).status == 3
    texts = {name: secret.text for name, secret in SECRETS_BY_NUMBER.items()}
    given = project.folder / "given.json"
    given.write_text(json.dumps({"texts": texts}), encoding="utf-8")
    done = project.here("-v", "-v", "run", "holds", "--input", f"@{given}")
    assert (done.status, seen(done.err)) == (0, set())
    return str(project.here("jobs", "--json").json[0]["job"])


async def pages(folder: Path, job: str) -> dict[str, str]:
    """Every page that can be looked at, by its address."""
    settings = load(env={}, cwd=folder, flags={"journal.url": str(folder / ".remit/journal.db")})
    shown: dict[str, str] = {}
    names = {"job": job, "step": "1", "session": job, "tool": "vault.read", "recipe": "holds"}
    paths = dict.fromkeys(page.path for page in PAGES if page.form is None)
    async with Remit(settings=settings, work=False) as remit, serving(remit) as server, aiohttp.ClientSession() as web:
        for path in paths:
            address = path
            for name, value in names.items():
                address = address.replace(f"{{{name}}}", quote(value))
            if "{" not in address:
                async with web.get(server.url + address) as answer:
                    shown[address] = await answer.text()
    return shown


def test_fifty_secrets_are_seen_nowhere_but_in_their_values(project: Project) -> None:
    assert len(SECRETS_BY_NUMBER) == 50
    job = prepared(project)
    found: dict[str, set[str]] = {}
    known = commands()
    assert (LOOKS.keys() | LEFT_OUT) - known.keys() == set(), "these commands are gone"
    for words in known.keys() - LEFT_OUT:
        for given in LOOKS.get(words, ((),)):
            line = (*words.split(), *given)
            done = project.here("-v", "-v", *line)
            found[" ".join(line)] = seen(done.out + done.err)
            if any("--json" in option.opts for option in known[words].params):
                done = project.here("-v", "-v", *line, "--json")
                rows = [json.loads(row) for row in done.out.splitlines() if row[:1] in "[{"] if done.out else []
                found[" ".join((*line, "--json"))] = seen(json.dumps(without_values(rows)) + done.err)
    for place in ("one.zip", "trace.html", *(f"one.{form}" for form in FORMS)):
        for name, text in texts_of(project.folder / place).items():
            if place != "one.zip" or (name != "events.ndjson" and not name.startswith("blobs/")):
                found[f"{place} {name}"] = seen(text)
    for file in (project.folder / "golden").iterdir():
        found[file.name] = seen(file.read_text(encoding="utf-8"))
    found |= {address: seen(outside(text)) for address, text in asyncio.run(pages(project.folder, job)).items()}
    assert len(found) > 100
    assert {where: names for where, names in found.items() if names} == {}
    assert project.here("verify").status == 0
