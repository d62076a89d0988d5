"""Reports of a check for machines and for people: JUnit's XML, and Markdown. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

from remit.parts.golden.noun import CLASSES, call_words, drift_words, reread_words
from remit.regex import regex

if TYPE_CHECKING:
    from remit.parts.golden.noun import CheckedJob, CheckReport, Class

_MARKS: Final = {"same": "✓", "annotation_only": "✓", "compatible": "✓", "breaking": "!", "failed": "✗"}
_ROWS: Final = 500
"""Jobs that a table of Markdown holds; the service that shows it cuts longer ones anywhere."""
_LONG: Final = 300
_UNFIT: Final = regex("[^\t\n -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(report: CheckReport, fail: Class) -> bytes:
    """Return JUnit's XML: a test case for each golden job, which fails from the class `fail` on."""
    failing = [job for job in report.jobs if CLASSES.index(job.result) >= CLASSES.index(fail)]
    suite = ET.Element("testsuite", name="remit check", tests=str(len(report.jobs)), failures=str(len(failing)))
    suite.attrib |= {"errors": "0", "skipped": "0"}
    for job in report.jobs:
        case = ET.SubElement(suite, "testcase", classname=_plain(job.recipe) or "remit", name=_plain(job.name))
        if job in failing:
            failure = ET.SubElement(case, "failure", message=_plain(job.words)[:_LONG], type=job.result)
            failure.text = _plain("\n".join(details(job)))
        elif job.words:
            ET.SubElement(case, "system-out").text = _plain("\n".join([job.result, *details(job)]))
    suites = ET.Element("testsuites")
    suites.append(suite)
    ET.indent(suites)
    written: bytes = ET.tostring(suites, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def markdown(report: CheckReport) -> str:
    """Return a table of what differs, worst first, with a line that sums up."""
    counts = ", ".join(f"{count} {name}" for name, count in report.counts.items() if count) or "no golden jobs"
    lines = [f"### remit check: {report.worst}", "", f"{len(report.jobs)} golden jobs: {counts}"]
    rows = sorted((job for job in report.jobs if job.result != "same"), key=lambda job: -CLASSES.index(job.result))
    if rows:
        lines += ["", "| | golden job | recipe | class | why |", "|---|---|---|---|---|"]
        lines += [_row(job) for job in rows[:_ROWS]]
    if len(rows) > _ROWS:
        lines += ["", f"… and {len(rows) - _ROWS} more"]
    return "\n".join(lines) + "\n"


def details(job: CheckedJob) -> list[str]:
    """Return everything that differs, a line each; the worst one first, and once."""
    lines = [job.words] if job.words else []
    lines += [*map(drift_words, job.drifts), *map(call_words, job.calls), *map(reread_words, job.rereads)]
    lines += [f"ran ungoverned: {call}" for call in job.ungoverned]
    lines += [f"not checked: {tool}, a server lists it" for tool in job.unchecked]
    return list(dict.fromkeys(lines))


def _row(job: CheckedJob) -> str:
    cells = (_MARKS[job.result], f"`{job.name}`", job.recipe, job.result, job.words[:_LONG])
    return "| " + " | ".join(_cell(text) for text in cells) + " |"


def _cell(text: str) -> str:
    """A text that ends no cell and begins no markup."""
    plain = " ".join(_plain(text).split())
    return plain.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def _plain(text: str) -> str:
    """The text without characters that XML has not."""
    return _UNFIT.sub("\N{REPLACEMENT CHARACTER}", text)
