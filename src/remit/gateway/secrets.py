"""Secrets of tools: read just before a call is announced, for its tool alone, and masked in all that comes back.

The record says by an HMAC which version of a secret a call had. Its key is made of the value itself, slowly, so that no
key has to be kept, every process says the same, and a guess costs as much as it may.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from remit.canonical import as_json
from remit.clock import Clock, SystemClock
from remit.codes import Code
from remit.errors import ProviderError, RemitError, SettingsError
from remit.gateway.outcome import Outcome, refused
from remit.large import decode, is_large
from remit.policy.globs import name_matches
from remit.process.output import output_of
from remit.redact import MASK
from remit.redact.forms import SHORTEST, ValueMask, with_lines
from remit.settings.expansion import KEYRING, expand
from remit.settings.sections.secrets import SecretTable
from remit.tools.provider import CallContext, EvidenceCandidate, Keeper, LogLevel, ToolResult

_LONGEST: Final = 64 * 1024


class SecretVersion(NamedTuple):
    """A secret as it was read."""

    value: str
    version: str
    """The HMAC that the record has of it."""
    until: float
    """When it is read again, on the monotonic clock."""

    def __repr__(self) -> str:
        """Leave out the value."""
        return f"<secret {self.version}>"


def version_of(name: str, value: str) -> str:
    """Return the HMAC that names a version of a secret; it takes some 40 ms."""
    key = hashlib.scrypt(value.encode("utf-8", "surrogatepass"), salt=f"remit/{name}".encode(), n=2**14, r=8, p=1)
    return f"hmac:{hmac.digest(key, name.encode(), 'sha256').hex()[:32]}"


class Secrets:
    """The secrets that the settings declare."""

    def __init__(
        self,
        tables: Mapping[str, SecretTable] | None = None,
        environ: Mapping[str, str] | None = None,
        folder: Path = Path(),
        clock: Clock | None = None,
    ) -> None:
        self._tables = tables or {}
        self._environ = {} if environ is None else environ
        self._folder = folder
        self._clock = clock or SystemClock()
        self._versions: dict[str, SecretVersion] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def take(self, tool: str, names: tuple[str, ...]) -> TakenSecrets | Outcome:
        """Return these secrets for a call of a tool, or why it cannot have them: SECRET_MISSING or SECRET_DENIED."""
        taken: dict[str, SecretVersion] = {}
        for name in names:
            table = self._tables.get(name)
            if table is None:
                reason = f"{tool} needs the secret {name}, which no setting declares"
                return refused(Code.SECRET_MISSING, reason, f"Declare secrets.{name}.")
            if not any(name_matches(pattern, tool) for pattern in table.tools):
                reason = f"secrets.{name}.tools does not name {tool}"
                return refused(Code.SECRET_DENIED, reason, "Add it there, if it may have this secret.")
            try:
                async with self._locks.setdefault(name, asyncio.Lock()):
                    taken[name] = await self._current(name, table)
            except SettingsError as error:
                return refused(Code.SECRET_MISSING, error.message, error.remedy)
        return TakenSecrets(taken, self._forget)

    def _forget(self, name: str, refused_value: str) -> None:
        """Read a secret again at the next call, unless that has happened by now."""
        version = self._versions.get(name)
        if version is not None and version.value == refused_value:
            self._versions[name] = version._replace(until=0.0)

    async def _current(self, name: str, table: SecretTable) -> SecretVersion:
        known, now = self._versions.get(name), self._clock.monotonic()
        if known is not None and now < known.until:
            return known
        value = await self._read(f"secrets.{name}", table)
        if len(value) < SHORTEST:
            remedy = "Choose a longer one, which can be masked."
            raise SettingsError(f"secrets.{name} has fewer than {SHORTEST} characters", remedy=remedy)
        same = known is not None and known.value == value
        version = known.version if known is not None and same else await asyncio.to_thread(version_of, name, value)
        until = now + table.seconds if table.keyring or table.command else 0.0
        self._versions[name] = SecretVersion(value, version, until)
        return self._versions[name]

    async def _read(self, setting: str, table: SecretTable) -> str:
        """Return the value of a secret as its source has it now. Raise SettingsError, which never quotes it."""
        if table.env:
            return expand(f"${{{table.env}}}", self._environ, setting)
        if table.keyring:
            return await asyncio.to_thread(expand, f"{KEYRING}{table.keyring}}}", self._environ, setting)
        try:
            if table.command:
                data = await output_of(table.command, self._environ, self._folder, f"{setting}.command")
            else:
                data = await asyncio.to_thread(_contents, table.file)
            return data.decode().rstrip("\r\n")
        except OSError as error:
            # A path behind the setting and a colon would be masked.
            msg = f"{table.file}, the file of {setting}, cannot be read: {error.strerror or type(error).__name__}"
            raise SettingsError(msg, remedy="Correct its file.") from error
        except UnicodeDecodeError:  # it would quote what stands there
            raise SettingsError(f"{setting} is no text in UTF-8", remedy="Correct its source.") from None


def _contents(file: str) -> bytes:
    with Path(file).open("rb") as source:
        return source.read(_LONGEST)


class TakenSecrets:
    """The secrets of one call (`remit.tools.provider.SecretsOfCall`), and the mask over what its tool gives."""

    def __init__(self, taken: Mapping[str, SecretVersion], forget: Callable[[str, str], None]) -> None:
        self._taken = taken
        self._forget = forget
        values = [version.value for version in taken.values()]
        lines = with_lines(values)
        self._mask = ValueMask(values, MASK)
        self._lines = self._mask if lines == values else ValueMask(lines, MASK)

    @property
    def versions(self) -> dict[str, str]:
        """The HMAC of each, by name."""
        return {name: version.version for name, version in self._taken.items()}

    def get(self, name: str) -> str | None:
        version = self._taken.get(name)
        return version.value if version is not None else None

    def refuse(self, name: str) -> None:
        if name in self._taken:
            self._forget(name, self._taken[name].value)

    def given_to(self, context: CallContext) -> CallContext:
        """Return the context with the secrets; what the tool keeps or reports through it is masked."""
        report = context.progress

        def progress(done: float, total: float | None, message: str) -> None:
            report(done, total, self._lines.text(message))

        write = context.lines

        def lines(text: str, level: LogLevel) -> None:
            write(self._lines.text(text), level)

        keeper = _MaskedKeeper(context.keeper, self._mask) if context.keeper is not None else None
        return msgspec.structs.replace(context, secrets=self, keeper=keeper, progress=progress, lines=lines)

    def text(self, text: str) -> str:
        """A text without them."""
        return self._mask.text(text)

    def value(self, value: Any) -> Any:
        """A value without them, whether or not it is JSON; nothing of one that is too deep."""
        try:
            return self._mask.value(value)
        except RecursionError:
            return MASK

    def json(self, value: Any) -> Any:
        """A JSON value without them. Raises ProviderError if JSON cannot represent it."""
        try:
            encoded = as_json(value)
        except Exception as error:  # noqa: BLE001 - a value may bring code of its own
            cause = error.message if isinstance(error, RemitError) else type(error).__name__
            reason = self.text(f"the tool returned a value that JSON cannot represent: {cause}")
            raise ProviderError(
                reason, cause=Code.BadGateway, code=Code.RESULT_NOT_ENCODABLE, effect="committed"
            ) from None
        masked = self._mask.encoded(encoded)
        if masked is encoded:
            return value
        try:
            return decode(masked)
        except msgspec.DecodeError:  # one stood in a number, or began within an escape
            return self.value(decode(encoded))

    async def without(self, result: object) -> object:
        """Return what a tool gave without them; in a thread if it is large. Raises ProviderError as `json` does."""
        if not isinstance(result, ToolResult):  # the gate refuses it
            return result
        return await asyncio.to_thread(self.result, result) if is_large(result.value) else self.result(result)

    def result(self, result: ToolResult) -> ToolResult:
        """Do the same at once."""
        evidence: object = result.evidence
        items = tuple(map(self._evidence, result.evidence)) if isinstance(evidence, list | tuple) else result.evidence
        return msgspec.structs.replace(result, value=self.json(result.value), evidence=items)

    def _evidence(self, item: Any) -> Any:
        """Mask what is as it should be of a candidate; the gate refuses the rest."""
        if not isinstance(item, EvidenceCandidate):
            return item
        texts = {name: getattr(item, name) for name in ("kind", "source", "text")}
        changes: dict[str, Any] = {name: self.text(text) for name, text in texts.items() if isinstance(text, str)}
        if isinstance(item.data, bytes):
            changes["data"] = self._mask.data(item.data)
        return msgspec.structs.replace(item, metadata=self.value(item.metadata), **changes)


class _MaskedKeeper:
    """Keeps bytes without the secrets of a call; their digest is that of what is kept."""

    def __init__(self, keeper: Keeper, mask: ValueMask) -> None:
        self._keeper = keeper
        self._mask = mask

    async def put(self, data: bytes, *, until: int | None = None) -> str:
        return await self._keeper.put(self._mask.data(data), until=until)

    async def get(self, digest: str) -> bytes | None:
        return await self._keeper.get(digest)
