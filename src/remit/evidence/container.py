"""The zip of a package, and the files that its manifest names."""

from __future__ import annotations

import hashlib
import re
import struct
import zipfile
from typing import Any

from remit.evidence.rejected import RejectedError
from remit.evidence.strict_json import digest, read_json

FIRST, FORMAT = "remit-evidence-1", "remit-evidence-2"
"""The formats: in the first, the ledger says nothing of effects."""
NEWER = "format_newer"
"""The reason that is given for a package of a later format."""
_LATER = re.compile(r"remit-evidence-[1-9][0-9]{0,5}")
MAX_BYTES, MAX_FILES = 4 << 30, 1_000_000
"""The most bytes that all files unpack to together, and the most files."""
_SMALL, _RATIO = 1 << 20, 50
"""A JSON file, which is read whole, of more bytes unpacks to at most so many times its size; real ones to four."""
_DATE = 33
"""The first of January 1980, as a zip writes it."""
_NAME = re.compile(  # a file of another name needs another format, or old programs take it for a forgery
    r"(manifest|proof|metadata|checkpoints)\.json|(events|ledger)\.ndjson|verify\.py|blobs/[0-9a-f]{64}"
    r"|stamps/[1-9][0-9]{0,3}\.(checkpoint|tsr)"
)
_MEMBERS = {"format": str, "scope": str, "redacted": bool, "artifacts": list, "checks": list, "hash": str}


def read_manifest(package: zipfile.ZipFile, size: int) -> dict[str, Any]:
    """Return the manifest of a zip of `size` bytes. Raise RejectedError unless every file is the one that it names."""
    entries = _check_zip(package, size)
    if "manifest.json" not in package.namelist():
        raise RejectedError("manifest_schema_invalid", "there is no manifest.json")
    value: Any = read_json(package.read("manifest.json"), "manifest.json")
    manifest: dict[str, Any] = value if isinstance(value, dict) else {}
    form = manifest.get("format")
    is_later = isinstance(form, str) and form not in (FIRST, FORMAT) and _LATER.fullmatch(form)
    if is_later and manifest_hash(manifest) == manifest.get("hash"):
        raise RejectedError(NEWER, f"its format is {form}, and this program knows {FORMAT}: a newer Remit made it")
    if form not in (FIRST, FORMAT):
        raise RejectedError("manifest_schema_invalid", f"manifest.json is not of the format {FORMAT}")
    _check_names(entries)
    for name, kind in _MEMBERS.items():
        if not isinstance(manifest.get(name), kind):
            raise RejectedError("manifest_schema_invalid", f"manifest.json has no {name} of the right type")
    if manifest_hash(manifest) != manifest["hash"]:
        raise RejectedError("manifest_self_integrity_failed", "manifest.json does not match its own hash")
    _check_artifacts(package, manifest["artifacts"])
    paths, names = {row["path"] for row in manifest["artifacts"]}, [check["name"] for check in manifest["checks"]]
    if len(set(names)) != len(names):
        raise RejectedError("duplicate_check_name", "manifest.json names a check twice")
    for check in manifest["checks"]:
        if check["details_ref"] not in paths:
            raise RejectedError("details_ref_not_listed", f"{check['details_ref']} is not in the package")
    return manifest


def manifest_hash(manifest: dict[str, Any]) -> str:
    """Return the hash that a manifest has to state."""
    return digest({name: value for name, value in manifest.items() if name != "hash"})


def _check_zip(package: zipfile.ZipFile, size: int) -> list[zipfile.ZipInfo]:
    """Refuse a zip that two readers could see differently, or that unpacks to too much."""
    entries = package.infolist()
    names = package.namelist()
    if len(set(names)) != len(names):
        raise RejectedError("duplicate_artifact_path", "the zip holds a file twice")
    if package.comment:
        raise RejectedError("container_invalid", "the zip has a comment")
    _check_sizes(entries)
    end = 0
    for entry in sorted(entries, key=lambda entry: entry.header_offset):
        if entry.flag_bits or entry.extra or entry.comment or entry.external_attr >> 28 not in (0, 8):
            raise RejectedError("container_invalid", f"{entry.filename} is encrypted, a link, or has more fields")
        if not _is_said_twice(package, entry):
            raise RejectedError("container_invalid", f"{entry.filename} is said to be another file where it begins")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or entry.header_offset != end:
            raise RejectedError("container_invalid", f"{entry.filename} does not begin where the last file ends")
        end = entry.header_offset + 30 + len(entry.filename.encode()) + entry.compress_size
    directory = sum(46 + len(name.encode()) for name in names)
    if end != package.start_dir or size not in (end + directory + 22, end + directory + 98):
        raise RejectedError("container_invalid", "there are bytes between the files, or after them")
    return entries


def _check_names(entries: list[zipfile.ZipInfo]) -> None:
    for entry in entries:
        if not _NAME.fullmatch(entry.filename) or entry.orig_filename != entry.filename:
            raise RejectedError("container_invalid", f"{entry.filename!r} is not a file of a package")


def _check_sizes(entries: list[zipfile.ZipInfo]) -> None:
    if len(entries) > MAX_FILES or sum(entry.file_size for entry in entries) > MAX_BYTES:
        raise RejectedError("container_invalid", f"it has too many files, or they hold more than {MAX_BYTES} bytes")
    for entry in entries:
        if entry.filename.endswith(".json") and entry.file_size > max(_SMALL, _RATIO * entry.compress_size):
            raise RejectedError("container_invalid", f"{entry.filename} unpacks to {entry.file_size} bytes")


def _is_said_twice(package: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bool:
    """Say whether a file begins with what the list of files says of it, and both with the one date of packages."""
    name, sizes = entry.filename.encode(), (entry.CRC, entry.compress_size, entry.file_size)
    facts = (entry.extract_version, 0, entry.compress_type, 0, _DATE, *sizes, len(name), 0)
    header = struct.pack("<4s5H3L2H", b"PK\3\4", *facts) + name
    if package.fp is None or entry.date_time != (1980, 1, 1, 0, 0, 0):
        return False
    package.fp.seek(entry.header_offset)
    return package.fp.read(len(header)) == header


def _check_artifacts(package: zipfile.ZipFile, artifacts: list[dict[str, Any]]) -> None:
    named = [row["path"] for row in artifacts]
    if len(set(named)) != len(named):
        raise RejectedError("duplicate_artifact_path", "manifest.json names a file twice")
    if {*named, "manifest.json"} != set(package.namelist()):
        raise RejectedError("artifact_missing", "the files are not those that manifest.json names")
    for row in artifacts:
        hashed, size = hashlib.sha256(), 0
        with package.open(row["path"]) as content:
            while part := content.read(1 << 20):
                size += len(part)
                hashed.update(part)
        if (f"sha256:{hashed.hexdigest()}", size) != (row["sha256"], row["bytes"]):
            raise RejectedError("artifact_sha_mismatch", f"{row['path']} is not the file that manifest.json names")
