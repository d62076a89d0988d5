"""Every format by its name: how it is written, and how a file of it is checked."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from remit.evidence.answer import CheckAnswer
from remit.evidence.verify import counted
from remit.parts.audit.formats import ael, ael_check, agent_action, intoto, ocsf, otlp, receipts
from remit.parts.audit.formats.account import Bundle, ExportAccount, FormError, invalid, pack, strict, undecidable
from remit.parts.audit.formats.agent_action import opened
from remit.parts.audit.formats.keys import OperatorSigner, PublicKey, read_keys

STATEMENT: Final = "https://in-toto.io/Statement/v1"
PREDICATE: Final = "https://slsa.dev/provenance/v1"


def _check_provenance(place: Path, data: bytes, keys: Mapping[str, PublicKey]) -> CheckAnswer:
    """Check the provenance of a build: an in-toto statement v1 with SLSA's predicate v1, and the files that it names.

    The files lie beside it. It is a DSSE envelope, or the statement alone: then no one vouches for it.
    """
    is_signed = b'"payloadType"' in data
    statement = strict(opened(data.strip(), keys) if is_signed else data, "the statement")
    if (statement.get("_type"), statement.get("predicateType")) != (STATEMENT, PREDICATE):
        raise undecidable("unknown-type", "it is no statement of SLSA's provenance v1")
    for subject in statement["subject"]:
        _compare(place.parent, subject)
    count = len(statement["subject"])
    words = f"{counted(count, 'file')} beside it, as it says"
    if not count or not is_signed:
        raise undecidable("not_signed", f"{words}; nothing signs it")
    return CheckAnswer("valid", None, f"{words}, and signed by a key that you named", count)


def _compare(folder: Path, subject: Mapping[str, Any]) -> None:
    name = subject["name"]
    if Path(name).name != name:
        raise invalid("subject_name", "a subject's name is not that of a file beside it")
    try:
        with (folder / name).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise undecidable("subject_missing", f"{name} is not beside it") from None
    if digest != subject["digest"]["sha256"]:
        raise invalid("subject_mismatch", f"{name} is not the file that was built")


_LONGEST: Final = 1 << 30
_PEEK: Final = 64 * 1024
SIGNED: Final[dict[str, Callable[[ExportAccount, OperatorSigner], bytes]]] = {
    "ael": lambda account, by: pack(ael.write(account, by)),
    "in-toto": lambda account, by: pack(intoto.write(account, by)),
    "receipts": lambda account, by: b"".join(receipts.write(account, by)),
}
"""Writers of the file of a package's account, by format."""
UNSIGNED: Final[dict[str, Callable[[ExportAccount], bytes]]] = {
    "ocsf": lambda account: b"".join(ocsf.write(account)),
    "otlp": otlp.write,
}
"""Writers of formats that have no signature."""


def check(place: Path, keys: Path | None) -> CheckAnswer | None:
    """Check a file of any of the formats; None: it has another. Raise OSError, and UsageError for the keys."""
    known = read_keys(keys) if keys is not None else {}
    try:
        return _check(place, known)
    except FormError as error:
        return error.answer
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError, msgspec.DecodeError) as error:
        return CheckAnswer("undecidable", "form_invalid", f"it has the form of no format: {type(error).__name__}")


def _is_package(place: Path) -> bool:
    with zipfile.ZipFile(place) as file:
        return {"events.ndjson", "proof.json"} <= set(file.namelist())


def _check(place: Path, known: Mapping[str, PublicKey]) -> CheckAnswer | None:
    if place.is_dir() or zipfile.is_zipfile(place):
        if place.is_file() and _is_package(place):
            return None  # which has a check of its own, and is strict about names
        bundle = Bundle(place)
        if bundle.has(intoto.ATTESTATIONS):
            return agent_action.check(bundle.read(intoto.ATTESTATIONS), bundle.read(intoto.RECORDS), known)
        return ael_check.check(bundle, known) if _is_ael(bundle) else None
    if place.stat().st_size > _LONGEST:
        raise undecidable("too_large", "it is larger than 1 GiB")
    data = place.read_bytes()
    if not data:
        raise undecidable("empty", "the file is empty: nothing that it could tell has happened")
    begins = data[:_PEEK]
    if b'"payloadType"' in begins or b'"predicateType"' in begins:
        return _check_provenance(place, data, known)
    unsigned = otlp if b'"resourceSpans"' in begins else ocsf if b'"class_uid"' in begins else None
    return receipts.check(data, known) if unsigned is None else unsigned.check(data)


def _is_ael(bundle: Bundle) -> bool:
    return bundle.has("manifest.json") and b'"ael_format"' in bundle.read("manifest.json")
