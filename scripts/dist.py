"""Build the wheel and the source distribution of a commit, with their bill of materials, provenance and hashes.

python -m scripts.dist FOLDER [--key KEY.pem]: the same commit gives the same bytes. docs/production.md lists the files.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import uuid
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any, Final, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from remit.parts.audit.formats.agent_action import PAYLOAD_TYPE, envelope_message
from remit.parts.audit.formats.catalog import PREDICATE, STATEMENT
from remit.parts.audit.formats.keys import OperatorSigner

ROOT: Final = Path(__file__).parents[1]
GIT: Final = shutil.which("git") or "git"
BUILD_TYPE: Final = "urn:remit:dist:1"
"""`make dist` of a commit, as this file does it."""
_PIN: Final = re.compile(r"^([\w.-]+)==(\S+) .*?\n {4}# via (.*?)$", re.MULTILINE | re.DOTALL)
_HTMX: Final = re.compile(rb'version="([\d.]+)"')


class Build(NamedTuple):
    """What is built: a commit, and when it was made."""

    commit: str
    epoch: int
    """Seconds since the Unix epoch, which every file in the build carries."""
    version: str

    @property
    def instant(self) -> str:
        """Return the time, as RFC 3339 writes it."""
        return datetime.fromtimestamp(self.epoch, UTC).isoformat().replace("+00:00", "Z")


def main() -> int:
    """Write the files of the newest commit; what is not committed is left out."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--key", type=Path, help="an Ed25519 key as PEM, which signs the provenance")
    options = parser.parse_args()
    if _git("status", "--porcelain", "--untracked-files=no"):
        sys.stderr.write("What is not committed is left out.\n")
    with tempfile.TemporaryDirectory() as scratch:
        files = build(Path(scratch), _signer(options.key))
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (options.folder / name).write_bytes(data)
        sys.stdout.write(f"{options.folder / name}  {len(data)} bytes\n")
    return 0


def build(scratch: Path, signer: OperatorSigner | None) -> dict[str, bytes]:
    """Return every file of a build by its name."""
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or _git("show", "--no-patch", "--format=%ct", "HEAD"))
    _unpack(_run([GIT, "archive", "HEAD"], ROOT), scratch / "tree")
    wheel, source = distributions(scratch / "tree", scratch / "remit", epoch)
    version = source.name.removeprefix("remit-").removesuffix(".tar.gz")
    build_facts = Build(_git("rev-parse", "HEAD"), epoch, version)
    files = dict([wheel, source, *distributions(scratch / "tree/testing", scratch / "testing", epoch)])
    files[f"remit-{version}.cdx.json"] = _json(bill(build_facts, files, scratch / "tree"))
    statement = _json(provenance(build_facts, files, scratch / "tree"))
    if signer is None:
        files[f"remit-{version}.provenance.json"] = statement
    else:
        files[f"remit-{version}.intoto.jsonl"] = _envelope(statement, signer)
    files["SHA256SUMS"] = "".join(f"{_sha256(data)}  {name}\n" for name, data in sorted(files.items())).encode()
    return files


class File(NamedTuple):
    """A file of a build."""

    name: str
    data: bytes


def distributions(tree: Path, scratch: Path, epoch: int) -> tuple[File, File]:
    """Return the wheel and the source distribution of a tree; `scratch` is made for it."""
    scratch.mkdir()
    source = _source(_made("sdist", tree, scratch / "sdist", epoch), epoch)
    _unpack(gzip.decompress(source.data), scratch / "unpacked")
    (unpacked,) = (scratch / "unpacked").iterdir()
    return _wheel(_made("wheel", unpacked, scratch / "wheel", epoch), epoch), source  # of the sdist: it lacks nothing


def _made(kind: str, tree: Path, out: Path, epoch: int) -> Path:
    """Return the distribution that the build backend makes of a tree."""
    out.mkdir()
    program = f"import setuptools.build_meta as b, sys; b.build_{kind}(sys.argv[1])"
    _run([sys.executable, "-c", program, str(out)], tree, {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)})
    (made,) = out.iterdir()
    return made


def _source(file: Path, epoch: int) -> File:
    """Return a source distribution without what differs from machine to machine: owners, times, the order."""
    whole, packed = io.BytesIO(), io.BytesIO()
    with (
        tarfile.open(file) as archive_in,
        tarfile.open(fileobj=whole, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for entry in sorted(filter(tarfile.TarInfo.isfile, archive_in), key=lambda entry: entry.name):
            mode = 0o755 if entry.mode & 0o100 else 0o644
            plain = entry.replace(mtime=epoch, mode=mode, uid=0, gid=0, uname="", gname="")
            archive.addfile(plain, archive_in.extractfile(entry))
    with gzip.GzipFile(fileobj=packed, mode="wb", filename="", mtime=epoch) as archive:
        archive.write(whole.getvalue())
    return File(file.name, packed.getvalue())


def _wheel(file: Path, epoch: int) -> File:
    """Return a wheel in the same way; a zip has no time before 1980."""
    time = datetime.fromtimestamp(max(epoch, 315_532_800), UTC).timetuple()[:6]
    whole = io.BytesIO()
    with zipfile.ZipFile(file) as archive_in, zipfile.ZipFile(whole, "w") as archive:
        for name in sorted(archive_in.namelist(), key=lambda name: (".dist-info/" in name, name)):
            entry = zipfile.ZipInfo(name, time)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o100644 << 16
            archive.writestr(entry, archive_in.read(name))
    return File(file.name, whole.getvalue())


# --- bill of materials


class Pin(NamedTuple):
    """A package that is pinned, and what asked for it."""

    name: str
    version: str
    via: tuple[str, ...]
    """Packages, and `-r FILE` for the lists of requirements themselves."""

    @property
    def ref(self) -> str:
        """Return its package URL."""
        return f"pkg:pypi/{self.name}@{self.version}"


def pins(file: Path) -> Iterator[Pin]:
    """Return the pins of a file that pip-compile wrote."""
    for name, version, via in _PIN.findall(file.read_text(encoding="utf-8")):
        yield Pin(name, version, tuple(via.split(", ")))


def bill(build_facts: Build, files: dict[str, bytes], tree: Path) -> dict[str, Any]:
    """Return the bill of materials in CycloneDX 1.6: what is pinned for Remit and its extras, and what it carries."""
    known: dict[str, tuple[Pin, set[str]]] = {}
    for extra, file in _lists(tree).items():
        for pin in pins(file):
            known.setdefault(pin.ref, (pin, set()))[1].add(extra)
    own = f"pkg:pypi/remit@{build_facts.version}"
    htmx = _htmx(tree)
    refs = {pin.name: pin.ref for pin, _ in known.values()}
    needs: dict[str, set[str]] = {own: {htmx["bom-ref"]}} | {ref: set() for ref in (*known, htmx["bom-ref"])}
    for ref, (pin, _) in known.items():
        for by in pin.via:
            if (needing := own if by.startswith("-r ") else refs.get(by)) is not None:
                needs[needing].add(ref)
    digest = _sha256(b"".join(data for _, data in sorted(files.items())))
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, digest)}",
        "version": 1,
        "metadata": {
            "timestamp": build_facts.instant,
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": "remit",
                "version": build_facts.version,
                "purl": own,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            },
        },
        "components": [*(_component(*known[ref]) for ref in sorted(known)), htmx],
        "dependencies": [{"ref": ref, "dependsOn": sorted(needs[ref])} for ref in sorted(needs)],
    }


def _lists(tree: Path) -> dict[str, Path]:
    """Return the pins of Remit itself, under no name, and of each of its extras."""
    tool = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["dynamic"]
    names = [name for name in tool["optional-dependencies"] if name != "dev"]
    files = {name: tree / "requirements" / f"{name}.txt" for name in names}
    return {"": tree / "requirements/runtime.txt"} | {name: file for name, file in files.items() if file.exists()}


def _component(pin: Pin, extras: set[str]) -> dict[str, Any]:
    about = {"type": "library", "bom-ref": pin.ref, "name": pin.name, "version": pin.version, "purl": pin.ref}
    if "" in extras:
        return {**about, "scope": "required"}
    return {**about, "scope": "optional", "properties": [{"name": "remit:extra", "value": x} for x in sorted(extras)]}


def _htmx(tree: Path) -> dict[str, Any]:
    """Return the script that the wheel carries."""
    data = (tree / "src/remit/pages/static/htmx.min.js").read_bytes()
    (version,) = {number.decode() for number in _HTMX.findall(data)}
    return {
        "type": "library",
        "bom-ref": f"pkg:npm/htmx.org@{version}",
        "name": "htmx.org",
        "version": version,
        "purl": f"pkg:npm/htmx.org@{version}",
        "licenses": [{"license": {"id": "0BSD"}}],
        "hashes": [{"alg": "SHA-256", "content": _sha256(data)}],
    }


# --- provenance


def provenance(build_facts: Build, files: dict[str, bytes], tree: Path) -> dict[str, Any]:
    """Return the in-toto statement with SLSA's provenance v1: what was built of what, and how."""
    pinned = [file.relative_to(tree).as_posix() for file in (*_lists(tree).values(), tree / "requirements/dev.txt")]
    return {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": _sha256(data)}} for name, data in sorted(files.items())],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"commit": build_facts.commit, "version": build_facts.version},
                "internalParameters": {"SOURCE_DATE_EPOCH": build_facts.epoch},
                "resolvedDependencies": [
                    {"name": "source", "digest": {"gitCommit": build_facts.commit}},
                    {"uri": f"pkg:pypi/setuptools@{version_of('setuptools')}"},
                    *({"name": name, "digest": {"sha256": _sha256((tree / name).read_bytes())}} for name in pinned),
                ],
            },
            "runDetails": {"builder": {"id": os.environ.get("REMIT_BUILDER", "urn:remit:builder:unnamed")}},
        },
    }


def _envelope(statement: bytes, signer: OperatorSigner) -> bytes:
    signature = {"keyid": signer.name, "sig": base64.b64encode(signer.sign(envelope_message(statement))).decode()}
    payload = base64.b64encode(statement).decode()
    return json.dumps({"payloadType": PAYLOAD_TYPE, "payload": payload, "signatures": [signature]}).encode() + b"\n"


def _signer(key: Path | None) -> OperatorSigner | None:
    if key is None:
        return None
    private = load_pem_private_key(key.read_bytes(), None)
    if not isinstance(private, Ed25519PrivateKey):
        raise SystemExit(f"{key} is no Ed25519 key: openssl genpkey -algorithm ed25519 -out {key}")
    return OperatorSigner(private)


# --- helpers


def _unpack(data: bytes, folder: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        archive.extractall(folder, filter="data")


def _git(*words: str) -> str:
    return _run([GIT, *words], ROOT).decode().strip()


def _run(command: list[str], folder: Path, env: dict[str, str] | None = None) -> bytes:
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, check=True).stdout  # noqa: S603 - our own


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, indent=2).encode() + b"\n"


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
