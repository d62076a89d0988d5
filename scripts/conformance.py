"""Run the official MCP conformance suite: `python -m scripts.conformance [SUBJECT ...]`, from the project's folder.

Every subject meets the suite three times: as the release for 2025-11-25 has it, and with what each of the two revisions
of the protocol requires. A subject is a server, whose command prints the URL it listens on, or a client, whose command
is called with the URL of a server of the suite as its last argument. Fails where a scored scenario fails that
`EXCEPTIONS` does not name, and where one passes that it names. `make peers` installs the suite.
"""

from __future__ import annotations

import json
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Literal

from tests.peers import servers

Role = Literal["server", "client"]

RESULTS: Final = servers.ROOT / "build" / "conformance"
PATIENCE_S: Final = 60.0
"""How long a server may take to listen."""
SUITE_S: Final = 900.0
"""How long a run of the suite may take."""


@dataclass(frozen=True)
class Suite:
    """A release of the suite and what it is asked for."""

    name: str
    package: str
    server: tuple[str, ...]
    client: tuple[str, ...]


@dataclass(frozen=True)
class Subject:
    """What is put to the test."""

    name: str
    role: Role
    command: tuple[str, ...]
    suites: tuple[str, ...] = ("0.1.16", "2025-11-25", "2026-07-28")
    named: bool = False
    """Whether it is examined only where it is named."""
    first: tuple[str, ...] = ()
    """A command that has to succeed before it is started."""


@dataclass(frozen=True)
class Row:
    """The outcome of a scenario: how many of its checks passed and failed."""

    scenario: str
    passed: int
    failed: int
    unscored: str = ""
    """Why it does not count; empty: it does."""


def _required(revision: str) -> Suite:
    options = ("--requirements", revision)
    return Suite(revision, "conformance-2026", server=options, client=(*options, "--timeout", "120000"))


SUITES: Final = (
    Suite("0.1.16", "conformance-2025", server=(), client=("--suite", "all", "--spec-version", "2025-11-25")),
    _required("2025-11-25"),
    _required("2026-07-28"),
)


def _remit(era: str, *words: str) -> tuple[str, ...]:
    """A command about the test server, on a journal for each era."""
    journal = str(RESULTS / f"gateway-{era}.db")
    return (sys.executable, "-m", "remit", "--journal", journal, "mcp", *words, "--", *servers.conformance())


def _gateway(era: str) -> tuple[str, ...]:
    """Our gateway before the test server, all of whose tools run without a question."""
    return _remit(
        era, "wrap", "--http", "--port", "0", "--sampling", "--era", era, "--name", "suite", "--level", "*=L0"
    )


def _pin(era: str) -> tuple[str, ...]:
    """Accept the test server's tools: a level by pattern counts only then."""
    return _remit(era, "pin", "suite")


SUBJECTS: Final = (
    Subject("sdk-server", "server", tuple(servers.conformance(http=True)), named=True),
    # A server is asked in one era at a time, so each revision meets a gateway that asks it in its own.
    Subject("gateway-legacy", "server", _gateway("legacy"), ("0.1.16", "2025-11-25"), first=_pin("legacy")),
    Subject("gateway-modern", "server", _gateway("modern"), ("2026-07-28",), first=_pin("modern")),
    # The two releases ask the same of a client of 2025-11-25, and each scenario starts a process.
    Subject("client", "client", (sys.executable, "-m", "tests.peers.conformance_client"), ("2025-11-25", "2026-07-28")),
)

EXCEPTIONS: Final[Mapping[tuple[str, str, str], str]] = {}
"""By subject, suite and scenario: why it may fail."""

_SUMMARY: Final = re.compile(r"^[✓✗] (\S+): (\d+) passed, (\d+) failed", re.MULTILINE)
_UNSCORED: Final = re.compile(r"^  [✓✗] (\S+) \((.+)\)$", re.MULTILINE)


# -------------------------------------------------------------------------------------------------------------- reading
def rows(printed: str) -> list[Row]:
    """Scenarios in the summary that the suite printed last."""
    head, _, tail = printed.partition("SUMMARY ===")[2].partition("\nNot scored for ")
    reasons = dict(_UNSCORED.findall(tail))
    return [
        Row(scenario, int(passed), int(failed), reasons.get(scenario, ""))
        for scenario, passed, failed in _SUMMARY.findall(head)
    ]


def verdict(
    subject: str, suite: str, outcomes: Sequence[Row], exceptions: Mapping[tuple[str, str, str], str]
) -> tuple[int, list[str]]:
    """How many scored scenarios passed, and a line for each that is wrong: failed, or excepted for nothing."""
    scored = [row for row in outcomes if not row.unscored]
    excepted = {scenario for of, which, scenario in exceptions if (of, which) == (subject, suite)}
    failed = {row.scenario: row for row in scored if row.failed}
    wrong = [
        f"{row.scenario}: {row.failed} of {row.passed + row.failed} checks failed"
        for row in failed.values()
        if row.scenario not in excepted
    ]
    stale = [f"{scenario}: excepted, but it did not fail" for scenario in sorted(excepted - failed.keys())]
    return len(scored) - len(failed), wrong + stale


def reasons(folder: Path, scenario: str) -> list[str]:
    """Why checks of a scenario failed, from the results that the suite wrote to `folder`."""
    written = [path for prefix in ("server-", "") for path in folder.glob(f"{prefix}{scenario}-2*/checks.json")]
    checks = [check for path in written for check in json.loads(path.read_text(encoding="utf-8"))]
    return [
        f"{check['id']}: {check.get('errorMessage') or check['description']}"
        for check in checks
        if check["status"] == "FAILURE"
    ]


# -------------------------------------------------------------------------------------------------------------- running
@contextmanager
def target(subject: Subject) -> Iterator[list[str]]:
    """Arguments that lead the suite to a subject; a server runs for as long as the block."""
    if subject.role == "client":
        yield ["--command", shlex.join(subject.command)]
        return
    with (RESULTS / f"{subject.name}.log").open("w", encoding="utf-8") as log:
        if subject.first:
            subprocess.run(subject.first, stdout=log, stderr=log, check=True, timeout=PATIENCE_S)  # noqa: S603 - the same
        child = subprocess.Popen(  # noqa: S603 - the command is one of SUBJECTS
            subject.command, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        )
        with child:
            try:
                yield ["--url", _url(child.stdout, subject.name)]
            finally:
                _end(child)


def _url(printed: IO[str] | None, name: str) -> str:
    """The first line that holds a URL; nothing else may be printed before it.

    Raises:
        TimeoutError: Nothing was printed in time.
        RuntimeError: What was printed holds no URL.
    """
    if printed is None or not select.select([printed], [], [], PATIENCE_S)[0]:
        raise TimeoutError(f"{name} did not print its URL within {PATIENCE_S:.0f} s")
    line = printed.readline()
    match = re.search(r"https?://\S+", line)
    if match is None:
        raise RuntimeError(f"{name} printed {line!r} instead of its URL: see {RESULTS / name}.log")
    return match[0]


def _end(child: subprocess.Popen[str]) -> None:
    os.killpg(child.pid, signal.SIGTERM)
    try:
        child.wait(10)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)


def run(subject: Subject, suite: Suite, where: Sequence[str]) -> str:
    """What the suite prints about a subject; its results are in a folder of their own."""
    folder = RESULTS / subject.name / suite.name
    shutil.rmtree(folder, ignore_errors=True)
    options = suite.server if subject.role == "server" else suite.client
    index = servers.module(f"{suite.package}/dist/index.js")
    done = subprocess.run(  # noqa: S603 - the suite is pinned
        [servers.NODE22, index, subject.role, *where, *options, "--output-dir", str(folder)],
        check=False,
        capture_output=True,
        text=True,
        timeout=SUITE_S,
    )
    (folder.parent / f"{suite.name}.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
    return done.stdout


# -------------------------------------------------------------------------------------------------------------- telling
def examine(subject: Subject) -> tuple[int, int]:
    """Put a subject to every suite and print its outcome; how many passed and how many went wrong."""
    passed = failed = 0
    (RESULTS / subject.name).mkdir(parents=True, exist_ok=True)
    with target(subject) as where:
        for suite in (suite for suite in SUITES if suite.name in subject.suites):
            outcomes = rows(run(subject, suite, where))
            good, wrong = verdict(subject.name, suite.name, outcomes, EXCEPTIONS)
            if not outcomes:
                wrong.append(f"the suite did not finish: see {RESULTS / subject.name / suite.name}.txt")
            print(_line(subject.name, suite.name, good, len(wrong), outcomes))
            for problem in wrong:
                _tell(problem, RESULTS / subject.name / suite.name)
            passed, failed = passed + good, failed + len(wrong)
    return passed, failed


def _line(subject: str, suite: str, good: int, wrong: int, outcomes: Sequence[Row]) -> str:
    unscored = [row for row in outcomes if row.unscored]
    held = sum(not row.failed for row in unscored)
    checks = sum(row.passed for row in outcomes)
    excepted = sum(name == subject and of == suite for name, of, _ in EXCEPTIONS)
    return f"{subject:<16} {suite:<12} {good:>6} {wrong:>6} {excepted:>8} {held:>8}/{len(unscored):<3} {checks:>6}"


def _tell(problem: str, folder: Path) -> None:
    print(f"    {problem}")
    for reason in reasons(folder, problem.partition(":")[0]):
        print(f"        {reason[:240]}")


def main(names: Sequence[str]) -> int:
    """Examine the subjects of these names, or all that are ours; return the exit status."""
    chosen = [subject for subject in SUBJECTS if subject.name in names or not (names or subject.named)]
    unknown = set(names) - {subject.name for subject in chosen}
    if unknown:
        print(f"No subject {', '.join(sorted(unknown))}; there are {', '.join(item.name for item in SUBJECTS)}")
        return 2
    print(f"{'subject':<16} {'suite':<12} {'passed':>6} {'failed':>6} {'excepted':>8} {'unscored':>12} {'checks':>6}")
    counts = [examine(subject) for subject in chosen]
    failed = sum(wrong for _, wrong in counts)
    print(f"{sum(good for good, _ in counts)} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
