"""The page about audit: every reason is on it, and what it shows to do is done."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from remit.evidence.rejected import REASONS
from tests.opened import OpenRemit
from tests.parts.audit.packages import bought, export, packed, repacked
from tests.parts.audit.test_checkpoints import sign

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/audit.md").read_text(encoding="utf-8")
SCHEMA = json.loads((ROOT / "docs/evidence-1.schema.json").read_text(encoding="utf-8"))
FILES = {
    "manifest.json": "manifest",
    "events.ndjson": "event",
    "ledger.ndjson": "call",
    "proof.json": "proof",
    "metadata.json": "metadata",
    "checkpoints.json": "checkpoints",
}


def test_every_reason_is_on_the_page() -> None:
    assert [f"| `{name}` | {why} |" for name, why in REASONS.items() if f"| `{name}` | {why} |" not in PAGE] == []


@pytest.mark.parametrize("is_of_a_time", [False, True])
async def test_the_schema_describes_every_file(remit_in: OpenRemit, tmp_path: Path, is_of_a_time: bool) -> None:
    job = await bought(remit_in)
    await sign(remit_in, tmp_path)
    place = tmp_path / "one.zip"
    await export(remit_in, job, place)
    if is_of_a_time:
        async with remit_in(work=False) as remit:
            with place.open("w+b") as target:
                await remit.service.audit.package_between(0, remit.runtime.journal.clock.now(), target)
    with zipfile.ZipFile(place) as package:
        for file, name in FILES.items():
            data = package.read(file)
            rows: list[Any] = [json.loads(row) for row in (data.splitlines() if file.endswith(".ndjson") else [data])]
            validator = jsonschema_rs.validator_for(SCHEMA | {"$ref": f"#/$defs/{name}"})
            assert [error.message for row in rows for error in validator.iter_errors(row)] == [], file


@pytest.mark.slow
async def test_the_check_in_another_language_agrees(remit_in: OpenRemit, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs Node: apt-get install nodejs")
    good, bad = await packed(remit_in, tmp_path / "good.zip"), tmp_path / "bad.zip"
    repacked(good, bad, {"events.ndjson": lambda data: data.replace(b"desk.pay", b"desk.buy", 1)})
    for place, status in ((good, 0), (bad, 1)):
        folder = tmp_path / place.stem
        with zipfile.ZipFile(place) as package:
            package.extractall(folder)
        command = [node, str(ROOT / "examples/evidence/check.mjs"), str(folder)]
        ended = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=False, text=True)
        assert (ended.returncode, ended.stderr) == (status, ""), ended.stdout
