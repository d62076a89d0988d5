"""Every format by its name: how it is written, and how a file of it is checked."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from remit.evidence.answer import CheckAnswer
from remit.parts.audit.formats import ael, ael_check, agent_action, intoto, ocsf, otlp, provenance, receipts
from remit.parts.audit.formats.account import Bundle, ExportAccount, FormError, pack, undecidable
from remit.parts.audit.formats.keys import OperatorSigner, PublicKey, read_keys

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
        return provenance.check(place, data, known)
    unsigned = otlp if b'"resourceSpans"' in begins else ocsf if b'"class_uid"' in begins else None
    return receipts.check(data, known) if unsigned is None else unsigned.check(data)


def _is_ael(bundle: Bundle) -> bool:
    return bundle.has("manifest.json") and b'"ael_format"' in bundle.read("manifest.json")
