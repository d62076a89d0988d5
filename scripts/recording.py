"""Record a terminal: `make recording` writes docs/images/triage.svg from commands that really run.

A project is made by `remit init` in a folder of its own. Each command below runs in it, and the picture holds what it
printed, in its colours; the lines appear in the order and, up to a second, at the pace in which they came. Nothing is
loaded by the picture, and without motion it shows the whole session at once.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

from rich.console import Console
from rich.style import Style
from rich.text import Text

PICTURE: Final = "docs/images/triage.svg"
COLUMNS: Final = 100
SESSION: Final = (
    "remit run triage --customer grace",
    "remit confirm {question} --approve --reason 'the lamp came broken'",
    "remit resume last",
    "remit trace last",
    "remit replay last",
    "remit verify last",
)
"""The commands; `{question}` is the identifier of the question that the first one prints."""

_QUESTION: Final = re.compile(r"\bc_\w{26}\b")
_CHAR: Final = 8.4
_LINE: Final = 19
_MARGIN: Final = 16
_TYPING_S: Final = 0.9
"""How long the picture takes to show a command before its output."""
_LONGEST_S: Final = 1.0
_COLOURS: Final = {1: "#f85149", 2: "#56d364", 3: "#e3b341", 4: "#79c0ff", 6: "#56d4dd"}
"""Of the terminal's colours, by number; a bright one is eight further."""
_STYLE: Final = (
    "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#e6edf3;white-space:pre}"
    ".d{fill:#8b949e}.b{font-weight:700}.p{fill:#56d364}"
    "@media (prefers-reduced-motion:no-preference){.l{opacity:0;animation:s .01s forwards}@keyframes s{to{opacity:1}}}"
)


class Line(NamedTuple):
    """A line of the session: what it says, and when it is shown, in seconds."""

    text: Text
    at: float


Run = Callable[[str], str]
"""Runs a command; returns what it printed, with ANSI colours."""


def record(run: Run, clock: Callable[[], float]) -> list[Line]:
    """Run the session; its lines."""
    lines: list[Line] = []
    at = 0.0
    question = ""
    for command in SESSION:
        command = command.format(question=question)  # noqa: PLW2901 - the identifier is known only now
        lines.append(Line(Text.assemble(("$ ", "green"), (command, "bold")), at))
        at += _TYPING_S
        began = clock()
        printed = run(command)
        at += min(clock() - began, _LONGEST_S)
        match = _QUESTION.search(printed)
        question = question or (match[0] if match else "")
        rows = [row for text in printed.rstrip().split("\n") for row in _wrapped(Text.from_ansi(text))]
        lines += [Line(row, at) for row in rows]
        lines.append(Line(Text(""), at))
        at += _TYPING_S
    return lines[:-1]


def _wrapped(text: Text) -> Iterator[Text]:
    console = Console(width=COLUMNS, file=sys.stderr)
    yield from text.wrap(console, COLUMNS) or [Text("")]


def picture(lines: list[Line]) -> str:
    """The session as an SVG."""
    width = round(COLUMNS * _CHAR + 2 * _MARGIN)
    height = len(lines) * _LINE + 2 * _MARGIN
    rows = "\n".join(
        f'<text class="l" xml:space="preserve" x="{_MARGIN}" y="{_MARGIN + (number + 1) * _LINE - 5}"'
        f' style="animation-delay:{line.at:.1f}s">{_spans(line.text)}</text>'
        for number, line in enumerate(lines)
        if line.text.plain.strip()
    )
    commands = escape("\n".join(line.text.plain for line in lines if line.text.plain.startswith("$ ")))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">\n'
        f"<title>A terminal session</title><desc>{commands}</desc>\n<style>{_STYLE}</style>\n"
        f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>\n{rows}\n</svg>\n'
    )


def _spans(text: Text) -> str:
    console = Console(width=COLUMNS, file=sys.stderr)
    return "".join(_span(part.text, part.style) for part in text.render(console) if part.text != "\n")


def _span(text: str, style: Style | None) -> str:
    classes = " ".join(name[0] for name in ("bold", "dim") if style is not None and getattr(style, name))
    number = style.color.number if style is not None and style.color is not None else None
    fill = _COLOURS.get(number % 8, "") if number is not None else ""
    if not classes and not fill:
        return escape(text)
    attributes = (f' class="{classes}"' if classes else "") + (f' style="fill:{fill}"' if fill else "")
    return f"<tspan{attributes}>{escape(text)}</tspan>"


def main(root: Path) -> int:
    """Write the picture."""
    program = Path(sys.executable).with_name("remit")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        environ = {name: value for name, value in os.environ.items() if not name.startswith("REMIT_")}
        env = environ | {
            "COLUMNS": str(COLUMNS),
            "TERM": "xterm-256color",
            "TZ": "UTC",
            "REMIT_PRINCIPAL": "maria",
            "XDG_DATA_HOME": str(home / "data"),
        }

        def run(command: str) -> str:
            argv = [str(program), "--color", "always", *shlex.split(command)[1:]]
            ran = subprocess.run(  # noqa: S603 - the commands above
                argv,
                cwd=home / "shop",
                env=env,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            return ran.stdout

        begin = [str(program), "init", "shop"]
        subprocess.run(begin, cwd=home, env=env, capture_output=True, check=True)  # noqa: S603 - our own program
        lines = record(run, time.monotonic)
    (root / PICTURE).write_text(picture(lines), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent))
