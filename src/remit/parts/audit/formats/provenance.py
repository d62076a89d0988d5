"""The check of a build's provenance: an in-toto statement v1 with SLSA's predicate v1, and the files that it names.

The files lie beside it. It is a DSSE envelope, or the statement alone: then no one vouches for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from remit.evidence.answer import CheckAnswer
from remit.evidence.verify import counted
from remit.parts.audit.formats.account import invalid, strict, undecidable
from remit.parts.audit.formats.agent_action import opened
from remit.parts.audit.formats.keys import PublicKey

STATEMENT: Final = "https://in-toto.io/Statement/v1"
PREDICATE: Final = "https://slsa.dev/provenance/v1"


def check(place: Path, data: bytes, keys: Mapping[str, PublicKey]) -> CheckAnswer:
    """Check that a statement is signed by a known key, and is of the files beside it."""
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
