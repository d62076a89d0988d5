"""`remit export --format` and `remit verify FILE`, here and from a server, as the corpora's contract wants it."""

from __future__ import annotations

import json
import os
from io import BytesIO
from pathlib import Path
from typing import Final

import agent_evidence_vectors
import pytest
from agent_evidence_vectors import receiptsignature

from remit.client import RemoteRemit
from remit.errors import RemitError
from remit.parts.audit.formats import ENDINGS, Form
from remit.parts.audit.formats.catalog import SIGNED, UNSIGNED
from tests.cli.conftest import Project, project
from tests.client.conftest import serving
from tests.opened import OpenRemit
from tests.parts.audit.formats.errands import KEY, key_in, ran, remit_of
from tests.parts.audit.receiver import Collector, receiver

__all__ = ["project", "receiver"]

CONTRACT: Final = os.environ.get("REMIT_TEST_CONTRACT")
"""Whether the corpus's own harness is to run the command, 50 times."""


@pytest.fixture
def exported(project: Project) -> Project:
    """A project with a key, a job that ended, and the key's public half in `keys`."""
    project.configure(f'[audit]\nkey = "{key_in(project.folder)}"\n')
    assert project.here("run", "chatty").status == 0
    assert project.here("export", "last", "--format", "receipts", "-o", "one.jsonl", "--publish", "keys").status == 0
    return project


@pytest.mark.slow
def test_the_key_is_published_before_anything_is_exported(project: Project) -> None:
    refused = project.here("export", "--publish", "keys", "--json")
    assert (refused.status, "SETTINGS_INVALID" in refused.err) == (2, True)
    project.configure(f'[audit]\nkey = "{key_in(project.folder)}"\n')
    files = project.here("export", "--publish", "keys", "--json").json["files"]
    assert sorted(Path(name).suffix for name in files) == [".json", ".pub"]
    assert all((project.folder / name).is_file() for name in files)
    assert project.here("run", "chatty").status == 0
    assert project.here("export", "--since", "1h", "-o", "all.zip", "--publish", "more").status == 0
    assert sorted(place.name for place in (project.folder / "more").iterdir()) == sorted(
        Path(name).name for name in files
    )


@pytest.mark.parametrize("form", [*SIGNED, *UNSIGNED])
def test_what_is_exported_is_read_back(exported: Project, form: Form) -> None:
    place = exported.here("export", "last", "--format", form, "--json").json["file"]
    assert place.endswith(ENDINGS[form])
    ended = exported.here("verify", place, "--issuer-keys", "keys")
    verdict = "valid" if form in {"ael", "in-toto", "receipts"} else "undecidable"
    assert ended.status == {"valid": 0, "undecidable": 2}[verdict]
    last = json.loads(ended.out.splitlines()[-1])
    assert (last["verdict"], last["code"]) == (verdict, None if verdict == "valid" else "not_signed")
    assert exported.here("verify", place, "--json").json["verdict"] == "undecidable"


def test_a_changed_file_ends_with_status_1(exported: Project) -> None:
    place = exported.folder / "one.jsonl"
    place.write_bytes(place.read_bytes().replace(b"allow", b"deny!", 1))
    ended = exported.here("verify", "one.jsonl", "--issuer-keys", "keys/keys.json")
    assert (ended.status, json.loads(ended.out.splitlines()[-1])["code"]) == (1, "signature_invalid")


def test_without_a_key_nothing_is_signed(project: Project) -> None:
    assert project.here("run", "chatty").status == 0
    ended = project.here("export", "last", "--format", "ael")
    assert (ended.status, "audit.key" in ended.err) == (2, True)
    assert project.here("export", "last", "--format", "ocsf").status == 0


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ('key = "missing.pem"', "does not exist"),
        ('key = "open.pem"', "others may read"),
        ('key = "text.pem"', "no Ed25519 key"),
        ('key = "${NOWHERE}"', "NOWHERE"),
        ('key_command = ["false"]', "exit code 1"),
        ('key_command = ["/no/such/program"]', "No such file"),
    ],
)
def test_a_key_that_cannot_be_had_is_an_error_that_quotes_nothing(project: Project, setting: str, why: str) -> None:
    for name, mode in (("open.pem", 0o644), ("text.pem", 0o600)):
        (project.folder / name).write_text(KEY if name == "open.pem" else "not-a-key-but-secret")
        (project.folder / name).chmod(mode)
    project.configure(f"[audit]\n{setting}\n")
    assert project.here("run", "chatty").status == 0
    ended = project.here("export", "last", "--format", "receipts")
    assert (ended.status, why in ended.err) == (2, True), ended.err
    assert "secret" not in ended.err


@pytest.mark.parametrize("source", ["environment", "program"])
def test_the_key_can_come_from_elsewhere(project: Project, source: str) -> None:
    project.env["THE_KEY"] = KEY
    place = key_in(project.folder)
    project.configure(
        '[audit]\nkey = "${THE_KEY}"\n' if source == "environment" else f'[audit]\nkey_command = ["cat", "{place}"]\n'
    )
    assert project.here("run", "chatty").status == 0
    exported = project.here("export", "last", "--format", "receipts", "--publish", "keys", "--json").json["file"]
    assert project.here("verify", exported, "--issuer-keys", "keys").status == 0
    assert "PRIVATE" not in project.here("config").out


def test_spans_are_sent_to_a_collector(exported: Project, receiver: Collector) -> None:
    for _ in range(2):
        assert exported.here("export", "last", "--format", "otlp", "--to", receiver.url, "--json").json["sent"] > 1
    assert len(receiver.spans) == exported.here("export", "last", "--format", "otlp", "-o", "-").out.count('"spanId"')
    assert exported.here("export", "last", "--format", "ocsf", "--to", receiver.url).status == 2


@pytest.mark.slow
async def test_a_server_gives_the_bytes_that_its_journal_gives(remit_in: OpenRemit, tmp_path: Path) -> None:
    job = await ran(remit_in, tmp_path)
    forms: tuple[Form, ...] = ("ael", "in-toto", "receipts", "ocsf", "otlp")
    async with (
        remit_of(remit_in, tmp_path, work=False, flags={"audit.key": str(key_in(tmp_path))}) as remit,
        serving(remit.service) as url,
        RemoteRemit(url, "") as far,
    ):
        for form in forms:
            here, there = BytesIO(), BytesIO()
            await remit.service.audit.package(job, here, form=form)
            await far.service.audit.package(job, there, form=form)
            assert here.getvalue() == there.getvalue()
        with pytest.raises(RemitError, match="LOCAL_ONLY"):
            await far.service.audit.published()


@pytest.mark.skipif(not CONTRACT, reason="REMIT_TEST_CONTRACT is not set")
def test_the_harness_of_the_receipts_runs_the_command(exported: Project, tmp_path: Path) -> None:
    corpus = Path(agent_evidence_vectors.__file__).parent / "corpora" / "vectors-receipt-signature"
    report = tmp_path / "report.json"
    command = exported.command("verify")
    assert receiptsignature.run_external(str(corpus), list(command), str(report), "remit verify") == 0
    totals = json.loads(report.read_bytes())["totals"]
    assert (totals["vectors"], totals["pass"], totals["fail"]) == (25, 25, 0)
