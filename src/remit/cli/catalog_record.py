"""The catalog as it was last listed, for commands that look and must start nothing.

It is kept in a folder of the user's own, for each settings file, and only ever used to name and describe.
"""

from __future__ import annotations

import hashlib
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from remit.atomic import replace_file
from remit.cli.values import usage_error
from remit.codes import Code
from remit.errors import UsageError
from remit.settings.places import data_folder
from remit.tools.meta import ToolMeta

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.settings import Settings

_log: Final = logging.getLogger("remit.cli")


_FORMAT: Final = "remit-catalog-1"


class CatalogRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a project offered."""

    format: Literal["remit-catalog-1"] = _FORMAT
    tools: tuple[ToolMeta, ...] = ()
    recipes: tuple[tuple[str, str], ...] = ()
    """Names, and what each does in a line."""
    parameters: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """The parameters of each recipe, by its name."""


async def record(remit: Remit) -> None:
    """Keep what it offers for later; what cannot be kept is logged."""
    _keep(await _offered(remit), _place(remit.settings))


async def record_once(remit: Remit) -> None:
    """Keep what it offers if nothing was kept before."""
    if not _place(remit.settings).exists():
        await record(remit)


async def export(remit: Remit) -> bytes:
    """Return what it offers, for `--catalog`: the same tools make the same bytes, to be kept beside the rules."""
    return msgspec.json.format(msgspec.json.encode(await _offered(remit), order="deterministic"), indent=2) + b"\n"


def exported(file: Path) -> CatalogRecord:
    """Return what `export` made. Raises UsageError."""
    remedy = "Make it with `remit tools --export FILE`."
    with usage_error(str(file), remedy):
        data = file.read_bytes()
    try:
        return msgspec.json.decode(data, type=CatalogRecord)
    except msgspec.DecodeError as error:
        raise UsageError(f"{file} is not a tool catalog: {error}", code=Code.INVALID_INPUT, remedy=remedy) from error


async def _offered(remit: Remit) -> CatalogRecord:
    tools = sorted(await remit.service.tools.metas(), key=lambda tool: tool.name)
    outlines = remit.service.recipes.outlines()
    recipes = tuple((outline.name, outline.about) for outline in outlines)
    return CatalogRecord(
        tools=tuple(tools), recipes=recipes, parameters={outline.name: outline.parameters for outline in outlines}
    )


def _keep(catalog_record: CatalogRecord, place: Path) -> None:
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        data = msgspec.json.encode(catalog_record)
        if not place.exists() or place.read_bytes() != data:
            replace_file(place, data)
    except OSError as error:
        _log.warning("%s: %s; the catalog is not recorded", place.parent, error.strerror or error)


def recorded(settings: Settings) -> CatalogRecord | None:
    """Return what was offered when it was last listed; None if it never was."""
    try:
        return msgspec.json.decode(_place(settings).read_bytes(), type=CatalogRecord)
    except (OSError, msgspec.DecodeError):
        return None


def _place(settings: Settings) -> Path:
    name = hashlib.sha256(os.fsencode(settings.file or settings.folder)).hexdigest()[:40]
    return data_folder(os.environ) / "catalogs" / f"{name}.json"
