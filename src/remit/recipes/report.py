"""Writing a report from verified quotations. Pure.

Nothing in it is anyone's own prose: what is claimed is quoted, what is quoted is cited. Quotations come from files
that are not vetted, so whatever Markdown acts on is escaped in them: a quoted page can neither link, embed nor format.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from remit.recipes.evidence import Claim

_CODE_SPAN: Final = re.compile(r"(?<!`)(`{1,2})(?!`)([^`\\\[\]<>!]+)(?<!`)\1(?!`)")
_ACTIVE: Final = re.compile(r"[`*\[<]|~(?=~)|(?<![^\W_])_+|_+(?![^\W_])|&(?=#?\w)|\\(?=[!-/:-@\[-`{-~]|\Z)")
_UNSEEN: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202f\u2060-\u2069\ufeff]")


class Searched(msgspec.Struct, frozen=True, kw_only=True):
    """What was searched."""

    files: int
    passages: int


class Citation(msgspec.Struct, frozen=True, kw_only=True):
    """A claim of the report: a verbatim quotation and its place."""

    n: int
    text: str
    source: int
    """The number of its source."""
    start: int
    end: int
    sha256: str


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is quoted."""

    n: int
    path: str
    sha256: str
    title: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """An answer made of quotations."""

    query: str
    report: str
    """The report as Markdown."""
    evidence: list[Citation]
    """What the report quotes, each with its span and the number of its source (contract: tools, "Web")."""
    claims: list[Citation]
    """The same under its old name, which goes with the next release."""
    sources: list[Source]
    evidence_count: int
    searched: Searched


def compose(query: str, folder: str, claims: Sequence[Claim], searched: Searched) -> dict[str, Any]:
    """The report on verified claims, which come best first; JSON."""
    groups = _by_source(claims)
    sources = [
        Source(n=n, path=path, sha256=group[0].piece.sha256, title=group[0].piece.title)
        for n, (path, group) in enumerate(groups.items(), 1)
    ]
    citations: list[Citation] = []
    for source, group in zip(sources, groups.values(), strict=True):
        citations += [
            Citation(n=n, text=claim.text, source=source.n, start=claim.start, end=claim.end, sha256=source.sha256)
            for n, claim in enumerate(group, len(citations) + 1)
        ]
    text = "\n".join(_lines(query, folder, list(groups.values()), sources, searched))
    report = Report(
        query=query,
        report=text,
        evidence=citations,
        claims=citations,
        sources=sources,
        evidence_count=len(citations),
        searched=searched,
    )
    built: dict[str, Any] = msgspec.to_builtins(report)
    return built


def _by_source(claims: Sequence[Claim]) -> dict[str, list[Claim]]:
    """The claims by file, the file with the best claim first, each file's in the order of its text."""
    groups: dict[str, list[Claim]] = {}
    for claim in claims:
        groups.setdefault(claim.piece.path, []).append(claim)
    return {path: sorted(group, key=lambda claim: claim.start) for path, group in groups.items()}


def _lines(
    query: str, folder: str, groups: Sequence[Sequence[Claim]], sources: Sequence[Source], searched: Searched
) -> list[str]:
    lines = [f"# {plain(query)}", ""]
    where = f"{_many(searched.files, 'file')} ({_many(searched.passages, 'passage')}) in {name(folder)}"
    if not groups:
        return [*lines, f"No evidence: nothing in {where} answers this question.", ""]
    count = _many(sum(map(len, groups)), "quotation")
    lines += [f"{count} from {_many(len(groups), 'file')}, out of {where}. Every one is verbatim.", ""]
    number = 1
    for source, group in zip(sources, groups, strict=True):
        lines += _section(source, group, number)
        number += len(group)
    return lines + _source_list(groups, sources)


def _section(source: Source, group: Sequence[Claim], number: int) -> list[str]:
    lines = [f"## {name(source.path)}", ""]
    heading = ""
    for n, claim in enumerate(group, number):
        if claim.heading not in {"", heading}:
            heading = claim.heading
            lines += [f"In {name(heading)}:", ""]
        lines += [f"> “{plain(claim.plain)}” [{n}]", ""]
    return lines


def _source_list(groups: Sequence[Sequence[Claim]], sources: Sequence[Source]) -> list[str]:
    lines = ["## Sources", ""]
    number = 1
    for source, group in zip(sources, groups, strict=True):
        title = "" if source.title == source.path.rpartition("/")[2] else f": {plain(source.title)}"
        lines += [f"{source.n}. {name(source.path)}{title}  ", f"   {source.sha256}  "]
        places = (f"[{n}] characters {claim.start}-{claim.end}" for n, claim in enumerate(group, number))
        lines += ["   " + ", ".join(places), ""]
        number += len(group)
    return lines


def plain(text: str) -> str:
    """Text on one line that Markdown shows as it is; short code between backticks stays code."""
    text = " ".join(_UNSEEN.sub(" ", text).split())
    out: list[str] = []
    start = 0
    for span in _CODE_SPAN.finditer(text):
        out += [_escaped(text[start : span.start()]), span[0]]
        start = span.end()
    return "".join(out) + _escaped(text[start:])


def name(text: str) -> str:
    """A path or a name as inline code, whatever characters it has."""
    shown = _UNSEEN.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", shown)), default=0))
    pad = " " if fence != "`" else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def _escaped(text: str) -> str:
    return _ACTIVE.sub(lambda found: "".join("\\" + sign for sign in found[0]), text)


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
