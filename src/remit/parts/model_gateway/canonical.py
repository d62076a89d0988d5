"""The canonical form of a request: what makes two requests of a program the same, whatever ids and dates they have.

The rules are listed, each with its reason, and a look says which of them took part. No header counts: they differ
within a run. A rule takes away only what a client makes up for each; a bare date may be the person's question.

Pure: a request of yesterday is compared by the rules of today, so RULES_VERSION stands in what is reported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec

from remit.canonical import canonical, sha256
from remit.errors import NotCanonicalError
from remit.regex import regex

RULES_VERSION: Final = 1
Results = Literal["strict", "aside"]
"""Whether what tools returned counts, or only that it came, and its exit code and error flag."""

RULES: Final[Mapping[str, str]] = {
    "fields": "metadata, cache keys and the user's id name the run, not the question",
    "cache marks": "they move to the newest message with each request",
    "item ids": "a client numbers its own messages and reasoning each time",
    "ids": "ids of calls, and signatures, by the order in which they appear",
    "roots": "the work tree, the home and the temporary folder",
    "dates": "the date of today after the words that introduce it",
    "uuids": "made for each run",
    "wrappers": "lines that a client puts around what a tool returned: chunk ids, wall time, process groups",
    "lists": "enumerations and lists of skills come in an order of their own each time",
    "results": "what tools returned, where the caller sets it aside",
}
"""Every rule and its reason."""

_FIELDS: Final = frozenset(
    {"metadata", "client_metadata", "prompt_cache_key", "prompt_cache_retention", "safety_identifier", "user"}
)
_IDS: Final = frozenset({"id", "call_id", "tool_use_id", "tool_call_id", "item_id", "previous_response_id"})
_SEALS: Final = frozenset({"signature", "encrypted_content", "thoughtSignature"})
_VALUES: Final = frozenset(
    {"args", "arguments", "response", "parameters", "input_schema", "parametersJsonSchema", "schema", "properties"}
)
"""Below them stand values of tools: an `id` there is an argument. So it is below an `input` that is an object."""
_ITEMS: Final = frozenset({"message", "reasoning"})
_RESULTS: Final = frozenset({"tool_result", "function_call_output", "custom_tool_call_output"})
_CUE: Final = r"(today'?s date(?: is|:)?|current date(?: is|:)?|current month is|<current_date>)"
_DATE: Final = regex(rf"(?i){_CUE}(\s*)(?:[a-z]{{3,9}},? ){{0,3}}(?:\d{{1,2}},? )?\d{{4}}(?:-\d{{2}}-\d{{2}})?")
_ZONE: Final = regex(r"<timezone>[^<]{0,60}</timezone>")
_UUID: Final = regex(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b")
_WRAPPERS: Final = (
    regex(r"\b(Chunk ID: )[0-9a-f]+"),
    regex(r"\b(Wall time: )[\d.]+( seconds)?"),
    regex(r"\b(Process Group PGID: )\d+"),
)
_EXIT: Final = regex(r"(?i)(?:exit(?:ed)?(?: with)?(?: code| status)?|exit code:?)[ :]+(-?\d+)")
_SKILLS: Final = regex(r"(?:\s*<skill>.*?</skill>)+", re.DOTALL)
_SKILL: Final = regex(r"<skill>.*?</skill>", re.DOTALL)
_AVAILABLE: Final = regex(r"\(Available: ('[^()]*')\)")
_SHOWN: Final = 80


class Identity(NamedTuple):
    """The request, once the rules took away what does not count."""

    digest: str
    value: Any
    """The canonical request; None where the body is no JSON: its bytes count."""
    rules: frozenset[str]
    """The rules that took something away, or changed it."""


class RequestDifference(NamedTuple):
    """The first place where two requests differ."""

    path: str
    recorded: str
    now: str


class _Form:
    """Makes the canonical form of one request."""

    def __init__(self, roots: Mapping[str, str], results: Results) -> None:
        names = {path: name for path, name in roots.items() if path}
        dashed = {re.sub(r"[^A-Za-z0-9]", "-", path): name for path, name in names.items()}
        self._roots = sorted({**dashed, **names}.items(), key=lambda pair: -len(pair[0]))
        self._results = results
        self._ids: dict[str, str] = {}
        self.rules: set[str] = set()

    def of(self, value: Any, *, inside: bool = False) -> Any:
        """The form of a value; `inside` one of a tool."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list):
            return [self.of(each, inside=inside) for each in value]
        return self._object(value, inside=inside) if isinstance(value, dict) else value

    def _object(self, value: dict[str, Any], *, inside: bool) -> dict[str, Any]:
        form: dict[str, Any] = {}
        for name in sorted(value):  # the order in which ids appear is that of the names
            each = value[name]
            if not inside and self._is_dropped(name, value):
                continue
            if not inside and name in _IDS | _SEALS and isinstance(each, str):
                form[name] = self._renamed(each)
            elif name == "enum" and isinstance(each, list) and all(isinstance(item, str) for item in each):
                form[name] = self._changed("lists", each, sorted(each))
            else:
                below = inside or name in _VALUES or (name == "input" and isinstance(each, dict))
                form[name] = self.of(each, inside=below)
        return form if inside else self._aside(form)

    def _is_dropped(self, name: str, value: dict[str, Any]) -> bool:
        if name == "cache_control":
            self.rules.add("cache marks")
            return True
        if name == "id" and value.get("type") in _ITEMS:
            self.rules.add("item ids")
            return True
        return False

    def _aside(self, form: dict[str, Any]) -> dict[str, Any]:
        """A tool's result without what it says, but with its exit code; only where results are set aside."""
        if self._results == "strict":
            return form
        where = "functionResponse" if "functionResponse" in form else ""
        named = next((name for name in ("content", "output") if name in form), "")
        if form.get("type") in _RESULTS or form.get("role") == "tool":
            where = named
        if not where:
            return form
        tool = form[where]
        identity_fields = {"name": tool.get("name"), "id": tool.get("id")} if isinstance(tool, dict) else {}
        codes = _EXIT.findall(msgspec.json.encode(tool).decode())
        self.rules.add("results")
        return form | {where: {**identity_fields, "result": "<result>", "exit": codes}}

    def _renamed(self, name: str) -> str:
        self.rules.add("ids")
        return self._ids.setdefault(name, f"#{len(self._ids)}")

    def _text(self, text: str) -> str:
        for path, name in self._roots:
            if path in text:
                text = self._changed("roots", text, text.replace(path, name))
        text = self._changed("dates", text, _ZONE.sub("<zone>", _DATE.sub(r"\1\2<date>", text)))
        text = self._changed("uuids", text, _UUID.sub("<uuid>", text))
        for wrapper in _WRAPPERS:
            text = self._changed("wrappers", text, wrapper.sub(r"\1<…>", text))
        if "<skill>" in text or "(Available: " in text:
            text = self._changed("lists", text, _AVAILABLE.sub(_sorted_names, _SKILLS.sub(_sorted_skills, text)))
        return text

    def _changed(self, rule: str, before: Any, after: Any) -> Any:
        if before != after:
            self.rules.add(rule)
        return after


def _sorted_skills(match: re.Match[str]) -> str:
    return "\n" + "\n".join(sorted(_SKILL.findall(match[0])))


def _sorted_names(match: re.Match[str]) -> str:
    return f"(Available: {', '.join(sorted(match[1].split(', ')))})"


def identity(
    method: str,
    route: str,
    body: bytes,
    *,
    roots: Mapping[str, str] | None = None,
    results: Results = "strict",
    streams: bool = True,
) -> Identity:
    """Return what a request is; `roots` are folders of its run, each with the name that stands for it.

    Without `streams` it does not count whether the answer is to come as a stream.
    """
    plain = Identity(sha256(f"{method}\0{route}\0".encode() + body), None, frozenset())
    try:
        value = msgspec.json.decode(body) if body else None
        if not isinstance(value, dict):
            return plain
        form = _Form(roots or {}, results)
        fields = {name: each for name, each in value.items() if name not in _FIELDS}
        if len(fields) != len(value):
            form.rules.add("fields")
        if not streams:
            fields = {name: each for name, each in fields.items() if name not in {"stream", "stream_options"}}
        request = {"method": method, "route": route, "body": form.of(fields)}
        return Identity(sha256(canonical(request)), request, frozenset(form.rules))
    except (msgspec.DecodeError, UnicodeError, RecursionError, NotCanonicalError):
        return plain


def first_difference(recorded: Any, now: Any, path: str = "$") -> RequestDifference | None:
    """Return the first place where two canonical values differ; None if they do not."""
    if isinstance(recorded, dict) and isinstance(now, dict):
        for name in sorted({*recorded, *now}):
            if (difference := first_difference(recorded.get(name), now.get(name), f"{path}.{name}")) is not None:
                return difference
        return None
    if isinstance(recorded, list) and isinstance(now, list):
        for index in range(max(len(recorded), len(now))):
            left, other = (each[index] if index < len(each) else None for each in (recorded, now))
            if (difference := first_difference(left, other, f"{path}[{index}]")) is not None:
                return difference
        return None
    return None if recorded == now else RequestDifference(path, *_around(_shown(recorded), _shown(now)))


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _around(recorded: str, now: str) -> Sequence[str]:
    """Both texts from shortly before they part."""
    same = next((at for at, (item, other) in enumerate(zip(recorded, now, strict=False)) if item != other), 0)
    begin = max(0, same - _SHOWN // 4)
    head = "…" if begin else ""
    return [
        f"{head}{each[begin : begin + _SHOWN]}{'…' if len(each) > begin + _SHOWN else ''}" for each in (recorded, now)
    ]
