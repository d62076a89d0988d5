"""Builds: the same bytes each time, and a bill, a provenance and hashes that others' tools read."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from remit.parts.audit.formats import catalog
from remit.parts.audit.formats.keys import OperatorSigner
from scripts.dist import pins

ROOT = Path(__file__).parents[2]
PEERS = ROOT / "build/peers-releases"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs the repository: a build is of a commit"),
]


def build(folder: Path, *options: str, umask: int = 0o022, **env: str) -> Path:
    subprocess.run(
        [sys.executable, "-m", "scripts.dist", str(folder), *options],
        cwd=ROOT, env={**os.environ, **env}, umask=umask, check=True, capture_output=True,
    )  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("key") / "key.pem"
    private = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    file.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    signer = OperatorSigner(private)
    for name, data in signer.published().items():
        (file.parent / name).write_bytes(data)
    return file


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, key: Path) -> Path:
    return build(tmp_path_factory.mktemp("built"), "--key", str(key))


def only(folder: Path, pattern: str) -> Path:
    (file,) = folder.glob(pattern)
    return file


@pytest.fixture(scope="module")
def unsigned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build on what could be another machine."""
    scratch = tmp_path_factory.mktemp("scratch")
    other = {"TZ": "Pacific/Kiritimati", "LC_ALL": "C", "PYTHONHASHSEED": "7", "TMPDIR": str(scratch)}
    return build(scratch / "dist", umask=0o077, **other)


def test_the_same_commit_gives_the_same_bytes(built: Path, unsigned: Path) -> None:
    for name in (each.name for pattern in ("*.whl", "*.tar.gz", "*.cdx.json") for each in built.glob(pattern)):
        assert (built / name).read_bytes() == (unsigned / name).read_bytes()
    envelope = json.loads(only(built, "*.intoto.jsonl").read_bytes())
    assert base64.b64decode(envelope["payload"]) == only(unsigned, "*.provenance.json").read_bytes()


def test_every_file_has_its_hash(built: Path) -> None:
    rows = [line.split("  ") for line in (built / "SHA256SUMS").read_text(encoding="ascii").splitlines()]
    assert {name: digest for digest, name in rows} == {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in built.iterdir()
        if file.name != "SHA256SUMS"
    }


def test_the_wheels_install_and_run(built: Path, tmp_path: Path) -> None:
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        str(tmp_path / "a"),
    ]
    subprocess.run([*pip, *built.glob("*.whl")], check=True, capture_output=True)
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "a")}
    program = "import remit, remit.cli, remit_testing.clock; print(remit.__file__); remit.cli.main()"
    command = [sys.executable, "-P", "-c", program, "config", "--schema"]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=True)
    where, _, schema = done.stdout.partition("\n")
    assert where.startswith(str(tmp_path))
    assert json.loads(schema)["title"] == "remit.toml"


def test_the_bill_names_every_pin_and_who_needs_it(built: Path) -> None:
    bill = json.loads(only(built, "*.cdx.json").read_bytes())
    scopes = {part["name"]: part["scope"] for part in bill["components"] if "scope" in part}
    needs = {row["ref"].partition("/")[2].partition("@")[0]: row["dependsOn"] for row in bill["dependencies"]}
    runtime = [*pins(ROOT / "requirements/runtime.txt")]
    assert {name for name, scope in scopes.items() if scope == "required"} == {pin.name for pin in runtime}
    assert scopes["asyncpg"] == "optional"
    listed = re.findall(r"^([\w.-]+)", (ROOT / "requirements/runtime.in").read_text(encoding="utf-8"), re.MULTILINE)
    assert {name.lower() for name in listed} <= {ref.partition("/")[2].partition("@")[0] for ref in needs["remit"]}
    assert [ref.partition("@")[0] for ref in needs["rich"]] == ["pkg:pypi/markdown-it-py", "pkg:pypi/pygments"]


def test_remit_verify_reads_the_provenance(built: Path, unsigned: Path, key: Path) -> None:
    places = only(built, "*.intoto.jsonl"), only(unsigned, "*.provenance.json")
    signed, alone = (catalog.check(place, key.parent / "keys.json") for place in places)
    assert signed is not None
    assert (signed.verdict, signed.records) == ("valid", 5)
    assert alone is not None
    assert (alone.verdict, alone.code) == ("undecidable", "not_signed")


@pytest.mark.skipif(not PEERS.exists(), reason="needs build/peers-releases: make peers")
def test_other_tools_read_the_bill_and_the_provenance(built: Path, key: Path) -> None:
    (public,) = key.parent.glob("*.pub")
    point = json.loads((key.parent / "keys.json").read_bytes())["keys"][0]["x"]
    said = told(only(built, "*.cdx.json"), only(built, "*.intoto.jsonl"), base64url(point).hex())
    assert said["bill"] == "valid"
    assert said["signers"] == [public.stem]
    assert said["changed"] == "refused"
    assert said["type"] == "urn:remit:dist:1"
    for name, digest in said["subjects"].items():
        assert hashlib.sha256((built / name).read_bytes()).hexdigest() == digest


def told(bill: Path, envelope: Path, public: str) -> dict[str, Any]:
    program = Path(__file__).with_name("release_check.py")
    env = {**os.environ, "PYTHONPATH": str(PEERS)}
    done = subprocess.run(
        [sys.executable, program, bill, envelope, public], env=env, capture_output=True, text=True, check=True
    )
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def base64url(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
