"""The checks of `remit doctor`: each check says how it is, and how to fix it.

The checks of the journal in `remit doctor`.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from remit.capability import Check, Look
from remit.cli.context import MEMORY, CommandState, Requirement
from remit.cli.output import counted, reserved_stdout
from remit.errors import JournalError, RemitError, SettingsError

if TYPE_CHECKING:
    from remit.gateway.readiness import ReadinessSnapshot
    from remit.journal.journal import Journal
    from remit.record.views import ToolView
    from remit.settings import Settings


_LOW: Final = 1024**3
_FULL: Final = 100 * 1024**2
_WAL: Final = b"\x02\x02"
"""Bytes 18 and 19 of a database in WAL mode (https://www.sqlite.org/fileformat.html)."""


async def journal_checks(settings: Settings) -> AsyncIterator[Check]:
    """Yield how the journal is: room on the disk, whether it can be written to and is whole, its log and its mode."""
    url = settings.journal.url
    if url == MEMORY:
        yield Check("journal", "warn", "in memory: nothing is saved", "Set journal.url to a path.")
        return
    path = settings.journal.file
    if path is not None:
        yield _disk(path)
        if (missing := _creatable(path)) is not None:
            yield missing
            return
    from remit.clock import SystemClock
    from remit.wiring.journal import find_key, open_journal

    try:
        journal = open_journal(settings, SystemClock())
    except RemitError as error:
        yield Check.failed("journal", error)
        return
    try:
        key_file = await find_key(journal, settings)
        yield await _writable(journal, f"{path}, {_size(path)}" if path is not None else journal.url)
        yield await _whole(journal)
        yield _sealed(journal, key_file)
    except RemitError as error:
        yield Check.failed("journal", error)
    finally:
        await journal.close()
    if path is not None:
        yield _wal(path)
        yield _mode(path)


def _disk(path: Path) -> Check:
    free = shutil.disk_usage(_existing(path.parent)).free
    detail = f"{free / _LOW:.1f} GiB free"
    if free < _FULL:
        return Check("disk", "fail", detail, f"Free space under {path.parent}.")
    if free < _LOW:
        return Check("disk", "warn", detail, f"Free space under {path.parent} soon.")
    return Check("disk", "ok", detail)


def _creatable(path: Path) -> Check | None:
    """Return whether a journal can be made; None where there is one."""
    if path.exists():
        return None
    folder = _existing(path.parent)
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        remedy = f"Make {folder} writable, or choose another journal."
        return Check("journal", "fail", f"{path} cannot be created", remedy)
    return Check("journal", "ok", f"{path} is created when the first job starts")


def _existing(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that exists."""
    return next((parent for parent in (folder, *folder.parents) if parent.exists()), Path("/"))


async def _writable(journal: Journal, what: str) -> Check:
    from remit.journal.retirement import RETIRED, refusal, standing_of

    standing = await standing_of(journal)
    if standing.state in RETIRED:
        refused = refusal(journal.url, standing.state, standing.place)
        return Check("journal", "warn", refused.message, refused.remedy)
    if journal.is_older:
        return Check("journal", "ok", f"{what}, made by an older Remit; what first writes to it brings it up to date")
    await journal.put_blobs(())  # a commit of nothing: all that a commit takes, and it changes nothing
    return Check("journal", "ok", f"{what}, can be written to")


def _sealed(journal: Journal, key_file: Path | None) -> Check:
    """Return which file holds the key of this journal: it belongs to every backup, kept apart from it."""
    try:
        journal.require_key()
    except RemitError as error:
        return Check.failed("seals", error)
    if key_file is None:
        return Check("seals", "ok", "no key: anyone who can write to the journal can forge it (`remit journal seal`)")
    return Check("seals", "ok", f"the journal's key is in {key_file}; keep a copy, apart from backups of the journal")


def _size(path: Path) -> str:
    return f"{path.stat().st_size / 1024**2:.1f} MiB"


async def _whole(journal: Journal) -> Check:
    problems = await journal.integrity()
    if problems:
        return Check("integrity", "fail", "; ".join(problems[:3]), "Restore the journal from a backup.")
    return Check("integrity", "ok", "the storage reports no damage; `remit verify` checks the hashes")


def _mode(path: Path) -> Check:
    mode = path.stat().st_mode & 0o777
    if mode & 0o022:
        return Check("mode", "warn", f"others can write to {path} ({mode:o})", f"Run `chmod 600 {path}`.")
    return Check("mode", "ok", f"only its owner can write to it ({mode:o})")


def _wal(path: Path) -> Check:
    with path.open("rb") as file:
        header = file.read(20)
    if header[18:20] != _WAL:
        remedy = "Put the journal on a local disk: a network file system has no shared memory for the log."
        return Check("wal", "fail", "the journal is not in WAL mode", remedy)
    return Check("wal", "ok", "write-ahead log")


Verdict = Literal["ok", "warn", "fail"]

_PYTHON: Final = (3, 11)
_SQLITE: Final = (3, 51, 3)
"""From here on SQLite is free of a race between connections that reset the write-ahead log."""
_NARROW: Final = 80
_DECLARE: Final = "Give it a plain value in the type or the schema, or require it."


def _models(settings: Settings) -> Iterator[Check]:
    """Report tables of models that the first question would be refused for."""
    from remit.gateway.model_budgets import budgets_of
    from remit.models.fallback import fallbacks_of, retried_of

    chosen = settings.models
    try:
        fallbacks_of(chosen.fallbacks), retried_of(chosen.retried), budgets_of(chosen.budgets)
    except RemitError as error:
        yield Check.failed("models", error)


def _keyring(settings: Settings) -> Iterator[Check]:
    """Warn where secrets are read from a keyring that does not encrypt them."""
    from remit.settings.expansion import KEYRING, encrypting_keyring

    is_used = KEYRING in str(settings.mcp.servers) or any(
        "keyring" in table for table in settings.secrets.named.values()
    )
    if is_used and encrypting_keyring() is None:
        remedy = "Choose another in PYTHON_KEYRING_BACKEND, or read secrets from a command."
        yield Check("keyring", "warn", "secrets are in one that keeps plain text, or this machine has none", remedy)


async def checks(state: CommandState, *, live: bool) -> AsyncIterator[Check]:
    """Every check, in order; those that need settings are left out if there are none.

    Only `live` imports modules, starts servers and connects to them.
    """
    yield _python()
    yield _sqlite()
    yield _extras()
    try:
        settings = state.settings()
    except RemitError as error:
        yield Check.failed("settings", error)
    else:
        yield Check(
            "settings", "ok", str(settings.file) if settings.file else f"no remit.toml; defaults in {settings.folder}"
        )
        for check in (
            *_servers(settings),
            *_clients(settings),
            _policy(settings),
            *_models(settings),
            *_keyring(settings),
            *_named(settings),
            _trust(state, settings),
        ):
            yield check
        if live:
            settings = state.trusted()
            for check in _modules(settings):
                yield check
        else:
            settings = state.looked_at()
        for part in (journal_checks(settings), _workers(state), _tools(state, live=live)):
            async for check in part:
                yield check
        for check in _isolation(settings):
            yield check
        async for check in _parts(state, settings, live=live):
            yield check
    yield _terminal(state)


# --- the machine


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < _PYTHON:
        return Check("python", "fail", version, "Install Python 3.11 or newer.")
    return Check("python", "ok", f"{version} ({sys.implementation.name}, {sys.executable})")


def _sqlite() -> Check:
    import apsw

    version = apsw.sqlite_lib_version()
    if tuple(map(int, version.split("."))) < _SQLITE:
        remedy = f"Upgrade apsw: SQLite {'.'.join(map(str, _SQLITE))} or newer."
        return Check("sqlite", "warn", f"{version} may lose a write under load", remedy)
    return Check("sqlite", "ok", f"{version}, built into apsw")


def _extras() -> Check:
    """Return which extras are here: everything that each needs is installed."""
    here: dict[str, bool] = {}
    for line in requires("remit") or ():
        needs, _, condition = line.partition(";")
        extra = re.search(r'extra == "([\w-]+)"', condition)
        foreign = re.search(r'sys_platform == "(\w+)"', condition)
        if extra and extra[1] != "dev" and (not foreign or foreign[1] == sys.platform):
            name = re.match(r"[\w.-]+", needs)
            here[extra[1]] = here.get(extra[1], True) and name is not None and _installed(name[0])
    missing = [extra for extra, there in here.items() if not there]
    words = [", ".join(extra for extra, there in here.items() if there) or "none"]
    words += [f"not installed: {', '.join(missing)} (`pip install 'remit[{missing[0]}]'`)"] if missing else []
    return Check("extras", "ok", "; ".join(words))


def _installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def _terminal(state: CommandState) -> Check:
    out = state.output.out
    if not out.stream.isatty():
        return Check("terminal", "ok", "stdout is not a terminal: plain text, no prompts")
    encoding = out.stream.encoding or ""
    if not encoding.lower().startswith("utf"):
        return Check("terminal", "warn", f"encoding {encoding}", "Set a UTF-8 locale, such as LANG=C.UTF-8.")
    if out.width is not None and out.width < _NARROW:
        return Check("terminal", "warn", f"{out.width} columns", f"Make it {_NARROW} columns wide for readable tables.")
    asks = "can ask questions" if state.output.interactive else ("no questions: stdin or stderr is not a terminal")
    return Check("terminal", "ok", f"{out.width} columns, {'colour' if out.colored else 'no colour'}, {asks}")


# --- what the user wrote


def _servers(settings: Settings) -> Iterator[Check]:
    """Servers that the environment names and that cannot be used: without a word, others would be taken instead."""
    from remit.cli.servers import login_of
    from remit.settings.mcp_servers import written_servers
    from remit.settings.principal import principal

    try:
        written = written_servers(settings, os.environ)
    except RemitError as error:
        yield Check.failed("servers", error)
        return
    for warning in written.warnings:
        yield Check("servers", "warn", warning, "Correct the environment; docs/mcp.md shows the form.")
    for server in written.enabled:
        if (login := login_of(server, principal(settings))) in {"none", "expired"}:
            reason = f"the login at {server.name} has expired" if login == "expired" else f"no login at {server.name}"
            yield Check("servers", "warn", reason, f"Log in: remit mcp login {server.name}")


def _clients(settings: Settings) -> Iterator[Check]:
    """Clients that a server would refuse to start with."""
    from remit.settings.clients import clients

    try:
        warnings = clients(settings).warnings
    except RemitError as error:
        yield Check.failed("clients", error)
    else:
        yield from (Check("clients", "warn", warning, "docs/http.md shows the form.") for warning in warnings)


def _policy(settings: Settings) -> Check:
    from remit.cli.policies import configured

    try:
        policy = configured(settings)
    except RemitError as error:
        return Check.failed("policy", error, "`remit policy lint` finds every problem.")
    detail = f"{counted(len(policy.rules), 'rule')}, {policy.hash[:19]}…"
    if partial := ", ".join(rule.id for rule in policy.rules if rule.looks_for_untrusted):
        detail += f"; of agents over MCP and HTTP the taint of {partial} knows only what Remit gave in the session"
    return Check("policy", "ok", detail)


def _named(settings: Settings) -> Iterator[Check]:
    """Yield the settings of the core that name a model, or a file, which is not there."""
    from remit.models.names import parse

    try:
        parse(settings.models.default or "scripted:none")
    except RemitError as error:
        yield Check("models", "fail", f"models.default: {error.message}", error.remedy, error.code.name)
    signers = settings.confirm.allowed_signers
    if signers and not os.access(signers, os.R_OK):
        reason = f"{signers} cannot be read, so no signature counts"
        yield Check("confirm", "fail", reason, "Correct confirm.allowed_signers.")


def _trust(state: CommandState, settings: Settings) -> Check:
    from remit.cli.trust_question import standing_of

    trust_state = standing_of(settings, trusted=state.trust)
    if not trust_state.trusted:
        keys = ", ".join(sorted({claim.key for claim in trust_state.claims})) or "its journal"
        reason = f"{settings.folder} is not trusted: {keys}"
        return Check("trust", "warn", reason, "See what it would do: remit trust")
    return Check("trust", "ok", "the folder is trusted" if trust_state.claims else "nothing in the folder needs trust")


def _modules(settings: Settings) -> Iterator[Check]:
    from remit.service.modules import find
    from remit.tools.function import undeclared

    for name in settings.app.modules:
        try:
            with reserved_stdout():
                modules = find([name], settings.folder)
        except RemitError as error:
            yield Check.failed("module", error)
        else:
            providers = f", {counted(len(modules.providers), 'provider')}" if modules.providers else ""
            brings = f"{counted(len(modules.recipes), 'recipe')}, {counted(len(modules.tools), 'tool')}{providers}"
            yield Check("module", "ok", f"{name}: {brings}")
            for tool in modules.tools:
                if places := undeclared(tool.function, tool.meta.input_schema):
                    what = f"{tool.meta.name}: the approver of a call does not see the value of {', '.join(places)}"
                    yield Check("defaults", "warn", what, _DECLARE)


async def _parts(state: CommandState, settings: Settings, *, live: bool) -> AsyncIterator[Check]:
    """The parts that others made, and what parts look at themselves; only `live` imports those of others."""
    from remit.wiring.capabilities import FIRST_PARTY
    from remit.wiring.parts import checks_of, engine_part, found_parts, parts_of

    named = settings.app.capabilities
    for part in found_parts(settings, load=False):
        if part.name in named and not part.source:
            remedy = f"Install it, or take {part.name} out of app.capabilities."
            yield Check("part", "fail", f"{part.name} is not installed", remedy)
        elif part.part is None:
            used = "used" if part.name in named else "not used: app.capabilities does not name it"
            yield Check("part", "ok", f"{part.name} ({part.source}), {used}")
    parts = parts_of(settings) if live else FIRST_PARTY
    try:
        if live or settings.jobs.engine not in named:  # that of another's part is known once it is imported
            engine_part(parts, settings.jobs.engine)
    except RemitError as error:
        yield Check.failed("engine", error)
    look = Look(settings, lambda: state.remit(code="unused", blank=True), live)
    try:
        checks = await checks_of(parts, look)
    except RemitError as error:
        yield Check.failed("part", error)
        checks = await checks_of(FIRST_PARTY, look)
    for check in checks:
        yield check


def _isolation(settings: Settings) -> Iterator[Check]:
    from remit.cli.servers import known_servers

    try:
        servers = known_servers(settings).enabled
    except RemitError as error:
        yield Check.failed("servers", error)
        return
    names = ", ".join(server.name for server in servers if server.isolation == "none")
    if names:
        remedy = "Set sandbox = true for each in its table; until then use only servers that you trust."
        yield Check("isolation", "warn", f"none: {names}; each runs as you, with all your rights", remedy)


async def _workers(state: CommandState) -> AsyncIterator[Check]:
    with suppress(JournalError, SettingsError):  # which have a check of their own
        async with state.remit(code="unused", blank=True) as remit:
            for view in await remit.service.workers.views():
                if view.outdated:
                    what = f"{view.words} ({view.role}) runs with an older remit.toml than there is now"
                    yield Check("worker", "warn", what, "Its log says why; start it again if the file is right.")


# --- tools


async def _look_at_tools(
    state: CommandState, code: Requirement
) -> tuple[list[ToolView], dict[str, str], dict[str, str], ReadinessSnapshot]:
    async with state.remit(code=code, blank=True) as remit:
        tools = remit.service.tools
        return await tools.views(), await tools.failures(), await tools.unlike(), await tools.readiness()


async def _tools(state: CommandState, *, live: bool) -> AsyncIterator[Check]:
    code: Requirement = "wanted" if live else "recorded"
    try:
        tools, failures, unlike, readiness = await _look_at_tools(state, code)
    except (JournalError, SettingsError):  # which have a check of their own
        journal, state.journal = state.journal, MEMORY
        try:
            tools, failures, unlike, readiness = await _look_at_tools(state, code)
        finally:
            state.journal = journal
    for provider, reason in failures.items():
        yield Check("provider", "fail", f"{provider}: {reason}", "Its tools are missing. Fix the server, or remove it.")
    for key, need in {**readiness.required, **readiness.optional}.items():
        needed = key in readiness.required
        if need.ready:
            yield Check("dependency", "ok", f"{key} is ready{', and required' if needed else ''}")
        else:
            reason = f"{'required and ' if needed else ''}not ready: {need.code}, {need.detail or 'not known here'}"
            verdict: Verdict = "fail" if needed else "warn"
            yield Check(
                "dependency",
                verdict,
                f"{key} is {reason}",
                "Calls of tools that need it are refused until it is ready.",
            )
    if readiness.degraded:
        yield Check("readiness", "warn", f"degraded as of {readiness.as_of}", "Fix the dependencies above.")
    withheld = [tool for tool in tools if tool.quarantined]
    for tool in withheld:
        yield Check("tool", "warn", f"{tool.name} is withheld: {tool.quarantined}", tool.remedy)
    for name, difference in unlike.items():
        remedy = "Have it return that form: code that calls the name reads it. tools.preferred_provider_order chooses."
        yield Check("tool", "warn", f"{name}: {difference}", remedy)
    providers = sorted({tool.provider_id for tool in tools})
    yield Check("tools", "ok", f"{len(tools) - len(withheld)} of {', '.join(providers)}")
