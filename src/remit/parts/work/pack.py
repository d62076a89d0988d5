"""The context pack: the folder that holds everything an executor needs to know of one run, and what it leaves there.

    work_order.json  work_order.textproto  spec_snapshot.md  links.md  constraints.md  manifest.txt
    manifest.json                                                          given, read-only
    work_result.json | .pb | .textproto | .txt                             left by the executor
    stdout.log  stderr.log  work_audit.json  work_result.json              kept by the adapter, who keeps what was left
                                                                           as work_claim.json

A program that knows nothing of Remit can read it: it is text. `manifest.json` carries the SHA-256 of each file that is
given, so that both sides can see that none was changed. The pack of a run is written once, whole or not at all.

Handing over: what the next run of an issue is told of those before it, and which files deserve its attention.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

import msgspec

from remit.atomic import clear_place, replace_file
from remit.codes import Code
from remit.errors import ProviderError, UsageError
from remit.files.directory import ConfinedDirectory, WalkEntry
from remit.parts.work.document import MAX_DOCUMENT, write_document
from remit.parts.work.envelope import belongs_to_a_run
from remit.parts.work.forms import FORMS, read_result_in, write_in
from remit.parts.work.order import Constraints, WorkOrder, read_order
from remit.parts.work.references import IssueRef
from remit.parts.work.result import WorkResult, read_result
from remit.regex import regex

if TYPE_CHECKING:
    from remit.parts.work.unit import Run, WorkUnit


FOLDER: Final = "context_packs"
ORDER, ORDER_TEXT = "work_order.json", "work_order.textproto"
RESULT, CLAIM = "work_result.json", "work_claim.json"
RESULTS: Final = {f"work_result.{form}": form for form in FORMS}
"""The names of what an executor says, the first one counts."""
SPEC, LINKS, CONSTRAINTS = "spec_snapshot.md", "links.md", "constraints.md"
FILES, MANIFEST, AUDIT = "manifest.txt", "manifest.json", "work_audit.json"
STDOUT, STDERR = "stdout.log", "stderr.log"
LEFT: Final = frozenset({*RESULTS, CLAIM, STDOUT, STDERR, AUDIT})
"""Files that are not there when the pack is handed over."""
GIVEN: Final = frozenset({ORDER, ORDER_TEXT, SPEC, LINKS, CONSTRAINTS, FILES, MANIFEST})
LOGS: Final = (f".{STDOUT}", f".{STDERR}")
"""Endings of what setup and acceptance commands wrote."""

MAX_FILE: Final = 4_000_000
"""Bytes of a file that is given."""
MAX_FILES: Final = 500
_READ_ONLY: Final = 0o444


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What the pack was handed over with."""

    schema_version: int = 1
    files: dict[str, str]
    """The SHA-256 of each file, hexadecimal, by its path in the pack."""


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """What goes into a pack beside the order."""

    links: tuple[str, ...] = ()
    """The issue, pull requests, the runs before: Markdown list items."""
    look_at: tuple[str, ...] = ()
    """Files and folders of the repository that deserve attention."""
    files: Mapping[str, bytes] = {}
    """Whatever else is given, such as skills, by its path in the pack."""


class ContextPack:
    """One run's pack."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._inside = ConfinedDirectory(folder)
        self._audit = folder.with_name(f"{folder.name}.audit.json")
        self._proved = folder.with_name(f"{folder.name}.result.json")
        self.patch = folder.with_name(f"{folder.name}.patch")
        """The changes of the run, if its commits were pushed nowhere; beside the pack, like what was proved."""
        self.left = folder.with_name(f"{folder.name}.left")
        """Files that lay in the checkout and in no commit, once the checkout is gone."""

    @classmethod
    def of(cls, root: Path, issue: IssueRef, run_id: str) -> ContextPack:
        """Return the pack of a run, below the folder where packs are kept."""
        return cls(root / FOLDER / issue.file_name / run_id)

    @property
    def root(self) -> Path:
        """The folder below which packs are kept."""
        return self.folder.parents[2]

    @property
    def exists(self) -> bool:
        """Return whether the pack was written."""
        return (self.folder / MANIFEST).is_file()

    # --- given

    def write(self, order: WorkOrder, contents: Contents) -> None:
        """Write the pack beside its place and move it there. Do nothing if it is there. Raise OSError or UsageError."""
        if self.exists:
            return
        files = dict(_given(order, contents))
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=".pack-", dir=self.folder.parent))
        try:
            for path, data in files.items():
                _put(beside, path, data)
            digests = {path: sha256(data).hexdigest() for path, data in sorted(files.items())}
            _put(beside, MANIFEST, write_document(Manifest(files=digests)))
            beside.replace(self.folder)
        except BaseException:
            shutil.rmtree(beside, ignore_errors=True)
            raise

    def set_aside(self) -> Path | None:
        """Give way to a run that begins, for what stands here is of no run of the project; return where that is now."""
        for path in (self._audit, self._proved, self.patch):
            path.unlink(missing_ok=True)
        if not self.folder.exists():
            return None
        return self.folder.rename(tempfile.mkdtemp(prefix=f"{self.folder.name}.aside-", dir=self.folder.parent))

    def order(self) -> WorkOrder:
        """Return the order. Raise UsageError (WORK_INVALID)."""
        return read_order(self._read(ORDER, MAX_DOCUMENT))

    def verify(self) -> None:
        """Raise UsageError (WORK_INVALID) for what was changed, added or taken away since the pack was handed over."""
        manifest = msgspec.json.decode(self._read(MANIFEST, MAX_DOCUMENT), type=Manifest)
        present = {entry.path: entry for entry in self._entries()}
        faults = [f"{path} is missing" for path in sorted(manifest.files.keys() - present.keys())]
        for path, entry in sorted(present.items()):
            if entry.kind != "file":
                faults.append(f"{path} is no regular file")
            elif path in manifest.files:
                if sha256(self._read(path, MAX_FILE)).hexdigest() != manifest.files[path]:
                    faults.append(f"{path} was changed")
            elif path != MANIFEST and path not in LEFT and not path.endswith(LOGS):
                faults.append(f"{path} is not in the manifest")
        if faults:
            raise _invalid(f"{self.folder.name}: {'; '.join(faults[:10])}")

    # --- left

    def claim(self) -> WorkResult | None:
        """Return what the executor says, in the first of the forms; None if it says nothing.

        Raise UsageError (output_unparseable) for a result that cannot be read, or that names no run.
        """
        for name, form in ((CLAIM, FORMS[0]), *RESULTS.items()):
            if os.path.lexists(self.folder / name):
                data = self._left(name)
                try:
                    return read_result_in(form, data)
                except UsageError as error:
                    nameless = form == "txt" and not belongs_to_a_run(data)
                    reason = "the result names no run" if nameless else error.message
                    raise UsageError(reason, code=Code.output_unparseable, remedy=error.remedy) from error
        return None

    def result(self) -> WorkResult | None:
        """Return the result that was proved; None if none was. Raise UsageError (output_unparseable)."""
        return read_result(self._proved.read_bytes()) if self._proved.exists() else None

    def put_result(self, result: WorkResult) -> None:
        """Write the result that was proved, beside the pack too; what the executor said in its place is kept."""
        place, claim = self.folder / RESULT, self.folder / CLAIM
        if not self._proved.exists() and os.path.lexists(place) and not os.path.lexists(claim):
            place.rename(claim)
        data = write_document(result)
        replace_file(self._proved, data)
        self._replace(RESULT, data)

    def put_audit(self, audit: msgspec.Struct) -> None:
        """Write what the adapter knows of the process; beside the pack too, where no program of the run can write."""
        data = write_document(audit)
        replace_file(self._audit, data)
        self._replace(AUDIT, data)

    def audit(self) -> bytes | None:
        """Return what `put_audit` wrote; None if it did not."""
        return self._audit.read_bytes() if self._audit.exists() else None

    def open_log(self, name: str) -> BinaryIO | None:
        """Open what a program wrote; None for no regular file: a program may have put a link or a pipe there."""
        try:
            descriptor = os.open(self.folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return os.fdopen(descriptor, "rb")
        os.close(descriptor)
        return None

    def _replace(self, name: str, data: bytes) -> None:
        place = self.folder / name
        clear_place(place)
        replace_file(place, data)

    def _left(self, name: str) -> bytes:
        try:
            return self._inside.read(name, MAX_DOCUMENT).data
        except ProviderError as error:
            raise UsageError(str(error), code=Code.output_unparseable, remedy="Write a regular file.") from error

    def _read(self, path: str, cap: int) -> bytes:
        try:
            return self._inside.read(path, cap).data
        except ProviderError as error:
            raise _invalid(str(error)) from error

    def _entries(self) -> Iterator[WalkEntry]:
        try:
            for number, entry in enumerate(self._inside.walk(enter=lambda _: True)):
                if number > MAX_FILES:
                    raise _invalid(f"{self.folder.name} holds more than {MAX_FILES} files")
                if entry.kind != "folder":
                    yield entry
        except ProviderError as error:
            raise _invalid(str(error)) from error


def _given(order: WorkOrder, contents: Contents) -> Iterator[tuple[str, bytes]]:
    """Return the files of a pack. Raise UsageError (WORK_INVALID) for one that would not be one of it."""
    yield ORDER, write_document(order)
    if find_spec("google") is not None and find_spec("google.protobuf") is not None:
        yield ORDER_TEXT, write_in("textproto", order)
    if order.spec_snapshot:
        yield SPEC, order.spec_snapshot.encode()
    yield LINKS, _list("Links", contents.links or (order.issue_ref,)).encode()
    yield CONSTRAINTS, _constraints(order.constraints).encode()
    if contents.look_at:
        yield FILES, "".join(f"{path}\n" for path in contents.look_at).encode()
    for path, data in contents.files.items():
        parts = path.split("/")
        if path.startswith("/") or not all(parts) or {".", ".."} & {*parts} or parts[0] in LEFT | GIVEN:
            raise _invalid(f"{path!r} is no path inside a context pack")
        if len(data) > MAX_FILE:
            raise _invalid(f"{path!r} has more than {MAX_FILE:,} bytes")
        yield path, data
    if len(contents.files) > MAX_FILES:
        raise _invalid(f"a context pack takes {MAX_FILES} files")


def _put(folder: Path, path: str, data: bytes) -> None:
    place = folder / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)
    place.chmod(_READ_ONLY)


def _constraints(constraints: Constraints) -> str:
    rows = [
        *(f"Must not change: `{path}`" for path in constraints.forbidden_paths),
        *(f"An interface, for which contracts must be named: `{path}`" for path in constraints.interface_paths),
        *(f"Must pass: `{' '.join(command.args)}`" for command in constraints.commands),
        *([f"Target branch: `{constraints.target_branch}`"] if constraints.target_branch else []),
        *constraints.notes,
    ]
    return _list("Constraints", rows or ("None.",))


def _list(title: str, rows: tuple[str, ...] | list[str]) -> str:
    return f"# {title}\n\n" + "".join(f"- {row}\n" for row in rows)


def _invalid(reason: str) -> UsageError:
    return UsageError(f"the context pack cannot be used: {reason}", code=Code.WORK_INVALID, remedy="Start a new run.")


RUNS: Final = "runs"
"""The folder of a pack in which results and logs of runs before are."""
_MOST_RUNS: Final = 5
_MOST_FILES: Final = 100
_TAIL: Final = 64_000
_PATH: Final = regex(r"[\w./@+-]*[\w/]")


def contents_for(order: WorkOrder, unit: WorkUnit, results: Mapping[str, WorkResult], root: Path) -> Contents:
    """Return what goes into the pack of a run: links, and what the last runs before it left below `root`."""
    before = [run for run in unit.runs.values() if run.run_id != order.run_id][-_MOST_RUNS:]
    files: dict[str, bytes] = {}
    links = [reference for reference in (order.issue_ref, order.spec_ref) if reference]
    links += [f"builds on {reference}" for reference in order.depends_on]
    for run in reversed(before):
        result = results.get(run.run_id)
        links += _told(run, result)
        if result is not None:
            files[f"{RUNS}/{run.run_id}/{RESULT}"] = write_document(result)
        if tail := _tail_of(ContextPack.of(root, order.issue, run.run_id)):
            files[f"{RUNS}/{run.run_id}/{STDOUT}"] = tail
    return Contents(links=tuple(links), files=files)


def named_files(text: str, folder: Path) -> tuple[str, ...]:
    """Return the files and folders of a checkout that a text names, as it names them; hidden ones are left out."""
    words = dict.fromkeys(word.removeprefix("./") for word in _PATH.findall(text) if "/" in word or "." in word)
    names = (word for word in words if _is_within(word) and (folder / word).exists())
    return tuple(word for _, word in zip(range(_MOST_FILES), names, strict=False))


def _is_within(path: str) -> bool:
    return not path.startswith("/") and all(part and not part.startswith(".") for part in path.rstrip("/").split("/"))


def _told(run: Run, result: WorkResult | None) -> Iterator[str]:
    reason = f": {run.reason}" if run.reason else ""
    yield f"run {run.run_id} by {run.executor}, {result.status if result is not None else run.standing}{reason}"
    if result is None:
        return
    if result.summary:
        yield f"it says: {' '.join(result.summary.split())}"
    changes = (("pull request", result.changes.pr), ("commit", result.changes.commit))
    yield from (f"{name} {value}" for name, value in changes if value)
    yield from (f"{test.result}: {test.command}" for test in result.tests if test.command)
    yield from (f"open question: {' '.join(question.split())}" for question in result.questions)


def _tail_of(pack: ContextPack) -> bytes:
    """Return the end of what a run wrote; empty if nothing is there."""
    log = pack.open_log(STDOUT)
    if log is None:
        return b""
    with log:
        size = log.seek(0, 2)
        log.seek(max(0, size - _TAIL))
        return log.read(_TAIL)
