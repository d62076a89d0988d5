"""Where the recorder's key is: in a file, in the environment, or printed by a program; always as PEM.

Ed25519 keys as PKCS #8, which `openssl genpkey -algorithm ed25519` makes too. The first one signs; those that follow
are former ones, which hand the log over to it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from remit.codes import Code
from remit.errors import SettingsError
from remit.journal.keys import contents, keep_new
from remit.process.child import Child
from remit.process.environment import environment
from remit.recorder.note import Key, Signer, is_name
from remit.settings.expansion import expand
from remit.settings.places import data_folder

if TYPE_CHECKING:
    from remit.recorder.settings import RecorderSettings

_PEM: Final = re.compile(rb"-----BEGIN [A-Z ]+-----.+?-----END [A-Z ]+-----\n?", re.DOTALL)
_INSTALL: Final = "Install it: pip install 'remit[audit]'"
_WHO: Final = "recorder.key"
_LONGEST_S: Final = 30.0


def key_file(own: RecorderSettings, environ: Mapping[str, str]) -> Path | None:
    """The file of the key; None if the key is elsewhere."""
    if own.key_command or own.key.startswith("${"):
        return None
    if own.key:
        return Path(own.key)
    return data_folder(environ) / "recorder-keys" / f"{sha256(own.origin.encode()).hexdigest()[:40]}.pem"


async def load_signers(own: RecorderSettings, environ: Mapping[str, str], folder: Path) -> list[Signer]:
    """The key to sign with, then former ones. Raises SettingsError."""
    if own.key_command:
        return _signers(own, await _printed(own.key_command, environ, folder), "recorder.key_command")
    signers = known_signers(own, environ)
    if not signers:
        why = f"{key_file(own, environ)} does not exist"
        raise SettingsError(f"{_WHO}: {why}", remedy="Run `remit recorder key` to create it.")
    return signers


def known_signers(own: RecorderSettings, environ: Mapping[str, str]) -> list[Signer]:
    """The same, without running a program; empty if there is no key, or a program prints it. Raises SettingsError."""
    place = key_file(own, environ)
    if own.key_command:
        return []
    if place is None:
        return _signers(own, expand(own.key, environ, _WHO).encode(), _WHO)
    data = contents(place, _WHO)
    return _signers(own, data, str(place)) if data else []


def make_key(place: Path) -> None:
    """Make a file with a new key, unless there is one. Raises SettingsError without `cryptography`, or OSError."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415 - the same
            Encoding,
            NoEncryption,
            PrivateFormat,
        )
    except ImportError as error:
        raise _missing(error) from error
    private = Ed25519PrivateKey.generate()
    keep_new(place, private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def signers_in(name: str, data: bytes, where: str, *, witness: bool = False) -> list[Signer]:
    """The keys in PEM, signing as `name`. Raises SettingsError, which quotes nothing of them."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415 - the same
    except ImportError as error:
        raise _missing(error) from error
    try:
        found = [load_pem_private_key(block, None) for block in _PEM.findall(data)]
    except (ValueError, TypeError):  # it may quote what stands there
        found = []
    keys = [key for key in found if isinstance(key, Ed25519PrivateKey)]
    if not keys or len(keys) != len(found):
        raise SettingsError(f"{where}: it is no Ed25519 key in PEM", remedy="Make one with `remit recorder key`.")
    return [Signer(name, key, 4 if witness else 1) for key in keys]


def key_of(text: str, setting: str) -> Key:
    """A public key that a setting or an option names. Raises SettingsError."""
    try:
        return Key.parse(text)
    except ValueError as error:
        raise SettingsError(f"{setting}: {error}", remedy="Copy it whole, as it was printed: name+id+key.") from error


def _signers(own: RecorderSettings, data: bytes, where: str) -> list[Signer]:
    if not is_name(own.origin):
        raise SettingsError("recorder.origin: a space or a + stands in it", remedy="Write, say, example.com/agents.")
    return signers_in(own.origin, data, where)


async def _printed(command: tuple[str, ...], environ: Mapping[str, str], folder: Path) -> bytes:
    """The output of a program that prints a key; it appears nowhere else."""
    child = Child(tail_bytes=64 * 1024)
    try:
        await child.start(command, env=environment(environ, {}), cwd=str(folder))
        child.close_stdin()
        async with asyncio.timeout(_LONGEST_S):
            status = await child.ended()
    except (OSError, TimeoutError) as error:
        why = f"recorder.key_command: {str(error) or 'no answer in time'}"
        raise SettingsError(why, remedy="Name a program by its path.") from error
    finally:
        await child.close()
    if status != 0:
        why = f"recorder.key_command: {child.why_ended}"
        raise SettingsError(why, remedy="Run it in the project folder, and see.")
    return child.out.data


def _missing(error: ImportError) -> SettingsError:
    return SettingsError(f"{error.name} is not installed", code=Code.SETTINGS_INVALID, remedy=_INSTALL)
