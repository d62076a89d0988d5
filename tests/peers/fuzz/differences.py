"""The differences between a direct connection and one through Remit that are meant, each with its reason."""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from tests.peers.fuzz.messages import Sent

_HALF: Final = re.compile(r"\\u(?:d[89a-f][0-9a-f]{2}|fffd)|[\ud800-\udfff]", re.IGNORECASE)
_REFUSED: Final = frozenset({"number", "broken", "deep", "cut", "method", "junk", "none", "batch"})
"""Defects of a request that Remit refuses."""


_DROPPED: Final = frozenset({"half", "utf-8", "shape"})
"""Defects of what a server says that SDKs do not read."""
_PROPER: Final = {"content": [{"type": "text", "text": "proper"}]}


class Row(NamedTuple):
    """One kind of difference."""

    reason: str
    fits: Callable[[Sent, Any, Any], bool]
    sdk: str = ""
    """The one that it is limited to."""


def difference(sent: Sent, direct: Any, guarded: Any, sdk: str) -> str:
    """The reason why it differs; without one what differs, after a question mark; empty where nothing does."""
    theirs, ours = plain(direct), plain(guarded)
    if same(theirs, ours):
        return ""
    row = next((row for row in ROWS if row.sdk in {"", sdk} and row.fits(sent, theirs, ours)), None)
    if row is not None:
        return row.reason
    seen = f"direct: {json.dumps(theirs)[:400]}\n  remit:  {json.dumps(ours)[:400]}"
    return f"? {sdk} {sent.kind} {sent.data[:300]!r}\n  {seen}"


def same(theirs: Any, ours: Any) -> bool:
    """Return whether two values are the same JSON: 1 is 1.0, and no true."""
    return json.dumps(theirs, sort_keys=True) == json.dumps(ours, sort_keys=True)


def plain(value: Any) -> Any:
    """A value without what Remit adds on purpose, and with numbers as JSON has them."""
    match value:
        case dict():
            members = {name: plain(each) for name, each in value.items() if not name.startswith("dev.remit/")}
            return {n: e for n, e in members.items() if (n, e) not in (("_meta", {}), ("isError", False))}
        case list():
            return [plain(each) for each in value]
        case float() if value.is_integer():
            return int(value)
        case _:
            return value


def _defect(sent: Sent) -> str:
    return sent.kind.rpartition(" ")[2]


def _answered(sent: Sent, theirs: Any, ours: Any) -> bool:
    """The SDK says nothing; Remit answers once, under the id, and with an error where something is wrong."""
    if theirs != [] or not isinstance(ours, list) or len(ours) != 1:
        return False
    answer = ours[0]
    known = sent.request_id is None or same(answer["id"], plain(sent.request_id))
    return known and ("error" in answer or _defect(sent) not in _REFUSED)


def _refused(sent: Sent, theirs: Any, ours: Any) -> bool:
    """Remit refuses, under the id, a request that the SDK takes for another than it is."""
    answers = isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours) == 1
    return (
        answers
        and _defect(sent) in _REFUSED
        and theirs[0]["id"] == ours[0]["id"]
        and ours[0]["error"]["code"] == -32700
    )


def _unknown(_sent: Sent, _theirs: Any, ours: Any) -> bool:
    """A tool that no list has."""
    return (
        isinstance(ours, list) and len(ours) == 1 and ours[0].get("error", {}).get("message") == "Unknown tool: nothing"
    )


def _unreadable(sent: Sent, theirs: Any, _ours: Any) -> bool:
    """The SDK does not read what the server said, and takes the proper answer that comes after it."""
    return _defect(sent) in _DROPPED | _REFUSED and isinstance(theirs, dict) and theirs.get("result") == _PROPER


def _reshaped(sent: Sent, theirs: Any, _ours: Any) -> bool:
    """An answer of another shape than the protocol's."""
    return _defect(sent) == "shape" and isinstance(theirs, dict) and ("raised" in theirs or b'"image"' in sent.data)


def _spelled(sent: Sent, theirs: Any, ours: Any) -> bool:
    """An id in another spelling than it was sent in, which Python's SDK does not know again."""
    return (
        sent.kind == "same id" and theirs.get("result") == _PROPER and ours["result"]["content"][0]["text"] == "first"
    )


def _without_number(sent: Sent, theirs: Any, ours: Any) -> bool:
    """NaN and infinity, which Python's SDK takes."""
    return _defect(sent) == "number" and re.sub(r"-?(?:Infinity|NaN)", "null", json.dumps(theirs)) == json.dumps(ours)


def _marked(sent: Sent, theirs: Any, ours: Any) -> bool:
    """The same for a mark of the byte order before the message, which TypeScript's does not skip."""
    return (
        sent.data.startswith(BOM_UTF8)
        and isinstance(theirs, dict)
        and theirs.get("result") == _PROPER
        and ours != theirs
    )


def _too_deep(sent: Sent, theirs: Any, _ours: Any) -> bool:
    """Levels that few readers of JSON follow."""
    return _defect(sent) == "deep" and isinstance(theirs, dict)


def _worded(sent: Sent, theirs: Any, ours: Any) -> bool:
    """Parameters of the wrong kind: Remit refuses them before the server does."""
    if _defect(sent) != "params" or not (isinstance(theirs, list) and len(theirs) == len(ours) == 1):
        return False
    return ["error" in each and each["error"]["code"] for each in (*theirs, *ours)] == [-32602, -32602]


def _near(sent: Sent, theirs: Any, ours: Any) -> bool:
    """A method in nearly the spelling of one of MCP's."""
    answers = isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours) == 1
    return answers and _defect(sent) == "method" and [each["error"]["code"] for each in theirs + ours] == [-32601] * 2


def _read_at_once(_sent: Sent, theirs: Any, ours: Any) -> bool:
    """Progress that comes with the answer in one read, for which TypeScript's SDK has no listener any more."""
    return isinstance(theirs, dict) and _without_progress(theirs) == _without_progress(ours)


def _without_progress(seen: Any) -> Any:
    heard = [each for each in seen.get("heard", []) if each[0] != "progress"]
    return {**seen, "heard": heard}


def _well_formed(_sent: Sent, theirs: Any, ours: Any) -> bool:
    """The same, with U+FFFD for what is no Unicode."""
    return bool(_spelt(theirs) == _spelt(ours))


def _spelt(value: Any) -> Any:
    match value:
        case dict():
            return {_spelt(name): _spelt(each) for name, each in value.items()}
        case list():
            return [_spelt(each) for each in value]
        case str():
            return _HALF.sub("\ufffd", value)
        case _:
            return value


ROWS: Final[tuple[Row, ...]] = (
    Row("the SDK drops the message, and its sender waits; Remit answers it, under its id", _answered),
    Row("Remit refuses a request whose values JSON has no word for, or too deep to be read", _refused),
    Row("Remit refuses a tool that the server does not list", _unknown),
    Row(
        "the SDK does not read what the server said; Remit passes on what can be read, or says that nothing can",
        _unreadable,
    ),
    Row("the SDK refuses what its models do not hold; Remit makes a text of it, or passes it on", _reshaped),
    Row("an answer is known by the value of its id", _spelled),
    Row("a number that JSON has no word for is null", _without_number),
    Row("a mark of the byte order is skipped", _marked),
    Row("what lies too deep is null, and a result too deep for the record refused", _too_deep),
    Row("parameters of the wrong kind are refused in Remit's words", _worded),
    Row("a near spelling of a method of MCP's is refused by Remit, and goes nowhere", _near),
    Row("the SDK forgets a call's progress with its answer, where it reads both at once", _read_at_once, "typescript"),
    Row("half a character is U+FFFD for both sides and the record", _well_formed),
)
