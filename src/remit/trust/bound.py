"""The files that trust is bound to: remit.toml, and what it names in its folder."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from remit.errors import SettingsError
from remit.settings import Settings
from remit.settings.mcp_servers import configured_servers


def digests(settings: Settings, env: Mapping[str, str]) -> dict[str, str]:
    """SHA-256 of the settings file, of the modules it names and of the files that its servers' commands name, by path.

    Empty without a settings file. A file that is not there has an empty digest.
    """
    if settings.file is None:
        return {}
    named = [settings.file, *_modules(settings), *_programs(settings, env)]
    return {str(path): _digest(path) for path in dict.fromkeys(named)}


def _modules(settings: Settings) -> Iterator[Path]:
    if settings.sources["app.modules"] != str(settings.file):
        return
    for name in settings.app.modules:
        if name.endswith(".py"):
            yield Path(name)
        else:
            place = settings.folder.joinpath(*name.split("."))
            yield from (one for one in (place.with_suffix(".py"), place / "__init__.py") if one.is_file())


def _programs(settings: Settings, env: Mapping[str, str]) -> Iterator[Path]:
    try:
        found = configured_servers(settings, env)
    except SettingsError:
        return
    for server in found.enabled:
        for word in server.command:
            path = Path(server.cwd, word)
            if path.is_file() and path.resolve().is_relative_to(settings.folder):
                yield path.resolve()


def _digest(path: Path) -> str:
    if not path.is_file():  # a pipe would never end
        return ""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
