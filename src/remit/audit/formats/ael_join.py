"""One AEL artifact of two recorders: what both signed of the same traces, with the rule by which they are compared.

Each has signed its own lines, under its own key. A manifest is not signed, so anyone can put two artifacts together;
who does says who keeps the recorders apart, for no line can.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

from remit.audit.formats.ael_anchors import FILE
from remit.audit.formats.ael_trace import TRACE
from remit.audit.formats.bundle import Bundle
from remit.audit.formats.fault import FormError, strict
from remit.canonical import canonical
from remit.errors import UsageError

Custody = Literal["same-host", "same-operator", "independent"]
_COVERED: Final = ("tool.call",)
_HOW: Final = "Name what `remit export SESSION --format ael` wrote at the other side of the same calls."


def join(own: Bundle, place: Path, custody: Custody) -> dict[str, bytes]:
    """Return the files of an artifact, and of that at `place` what is about runs of both. Raise UsageError."""
    try:
        return _join(own, Bundle(place), custody)
    except OSError as error:
        raise UsageError(f"cannot read {place}: {error.strerror}", remedy=_HOW) from error
    except (FormError, KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{place} is not an artifact of AEL: {error}", remedy=_HOW) from error


def _join(own: Bundle, other: Bundle, custody: Custody) -> dict[str, bytes]:
    manifest: dict[str, Any] = json.loads(own.read("manifest.json"))
    manifest.pop("anchor", None)  # of one side alone: both are proven against one head of the log
    files = {name: own.read(name) for name in own.names if name != FILE}
    ids = {row["id"] for row in manifest["recorders"]}
    rows = [
        row for row in strict(other.read("manifest.json"), "manifest.json")["recorders"] if _is_shared(row, manifest)
    ]
    if not rows:
        raise UsageError("none of its runs is one of this job: it saw no call of it", remedy=_HOW)
    if clash := ids & {row["id"] for row in rows}:
        remedy = "Give each recorder a recorder.origin of its own."
        raise UsageError(f"both call a recorder {min(clash)}", remedy=remedy)
    files |= {f"recorders/{row['id']}.jsonl": other.read(f"recorders/{row['id']}.jsonl") for row in rows}
    files |= {name: other.read(name) for name in other.names if name.startswith("policy/")}
    manifest["recorders"] += [{name: row[name] for name in ("id", "run", "key", "file")} for row in rows]
    manifest |= {"custody": custody, "correspondence": {"classes": [*_COVERED], "match": "id"}}
    return {**files, "manifest.json": canonical(manifest)}


def _is_shared(row: Mapping[str, Any], manifest: Mapping[str, Any]) -> bool:
    """Return whether a run is one of both: a trace, for all other names mean something in one journal only."""
    is_shared = row["run"] in manifest["runs"] and row["run"].startswith(TRACE)
    return is_shared and row["file"] == f"recorders/{row['id']}.jsonl"
