"""Packages that tests export, and take apart."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from remit import Run, recipe, tool
from remit.canonical import canonical
from remit.evidence import verify
from remit.evidence.container import manifest_hash
from remit.parts.audit.package import write_package
from tests.opened import OpenRemit, until_waiting


@tool("desk.pay", level="L1")
def pay(cents: int, note: str = "") -> str:
    """Pay somebody."""
    return f"paid {cents} {note}"


@tool("desk.look", level="L0")
def look(text: str) -> str:
    """Look at a text."""
    return text


@recipe("buy")
async def buy(run: Run, note: str = "") -> Any:
    """Look, and pay somebody once a person approves."""
    await run.call("desk.look", {"text": note})
    return (await run.call("desk.pay", {"cents": 500, "note": note})).value


GIVEN: Mapping[str, Any] = {"tools": [pay, look], "recipes": [buy]}


async def bought(remit_in: OpenRemit, *, note: str = "x" * 20_000, approved: bool = True, **options: Any) -> str:
    """A job with values beside its events, approved and ended, or still waiting."""
    async with remit_in(**GIVEN) as remit:
        job = await remit.start(buy(note=note), **options)
        await until_waiting(remit, job.id)
        if approved:
            (question,) = await job.questions()
            await remit.service.confirmations.decide(question.confirmation, "approve")
            await job
    return job.id


async def export(remit_in: OpenRemit, job: str, place: Path, **form: Any) -> verify.PackageVerdict:
    """Write a package, and check it."""
    async with remit_in(**GIVEN, work=False) as remit:
        with place.open("w+b") as file:
            await write_package(remit.runtime.journal, job, file, **form)
    return verify.check(str(place))


async def packed(remit_in: OpenRemit, place: Path) -> Path:
    """The package of a job that ended."""
    await export(remit_in, await bought(remit_in), place)
    return place


def repacked(source: Path, target: Path, changes: Mapping[str, Callable[[bytes], bytes]]) -> None:
    """Write a package again with files changed, and a manifest that fits unless it was changed itself."""
    with zipfile.ZipFile(source) as package:
        files = {name: package.read(name) for name in package.namelist()}
    for name, change in changes.items():
        files[name] = change(files[name])
    manifest = json.loads(files.pop("manifest.json"))
    if "manifest.json" not in changes:
        kinds = {row["path"]: row["kind"] for row in manifest["artifacts"]}
        manifest["artifacts"] = [
            {"kind": kinds[name], "path": name, "sha256": f"sha256:{sha256(data).hexdigest()}", "bytes": len(data)}
            for name, data in sorted(files.items())
        ]
        manifest["hash"] = manifest_hash(manifest)
    elif manifest.get("hash") != "sha256:0":
        manifest["hash"] = manifest_hash(manifest)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as package:
        for name, data in [*files.items(), ("manifest.json", canonical(manifest))]:
            package.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
