"""Several files as one: a zip that is the same each time, and a folder or such a zip read back."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import IO, Final

from remit.audit.formats.fault import invalid, undecidable

_TIME: Final = (1980, 1, 1, 0, 0, 0)
_NAME: Final = re.compile(r"(?:[A-Za-z0-9_-][A-Za-z0-9._:-]*/){0,2}[A-Za-z0-9_-][A-Za-z0-9._:-]*")
_MAX_BYTES: Final = 1 << 30
_LEVEL: Final = 1
"""Signatures and digests do not get smaller: more effort costs time alone."""


def pack(files: Mapping[str, bytes]) -> bytes:
    """Return the zip of these files, in the order of their names."""
    whole = BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for name, data in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _TIME)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o100644 << 16
            archive.writestr(entry, data, compresslevel=_LEVEL)
    return whole.getvalue()


class Bundle:
    """The files of a zip or of a folder."""

    def __init__(self, place: Path | IO[bytes]) -> None:
        self._folder = place if isinstance(place, Path) and place.is_dir() else None
        self._files: dict[str, bytes] = {}
        if self._folder is not None:
            return
        try:
            with zipfile.ZipFile(place) as archive:
                self._unpack(archive)
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
            raise undecidable("container_invalid", f"it is not a zip: {error}") from None

    @property
    def names(self) -> list[str]:
        """The names of the files of a zip."""
        return [*self._files]

    def has(self, name: str) -> bool:
        """Say whether there is such a file."""
        return (self._folder / name).is_file() if self._folder is not None else name in self._files

    def read(self, name: str) -> bytes:
        """Return a file. Raise FormError if it is not there."""
        if not _NAME.fullmatch(name) or ".." in name or not self.has(name):
            raise invalid("file_missing", f"there is no {name}")
        return (self._folder / name).read_bytes() if self._folder is not None else self._files[name]

    def _unpack(self, archive: zipfile.ZipFile) -> None:
        entries = archive.infolist()
        names = [entry.filename for entry in entries]
        whole = sum(entry.file_size for entry in entries)
        if len(set(names)) != len(names) or whole > _MAX_BYTES or not all(map(_NAME.fullmatch, names)):
            raise invalid("container_invalid", "the zip holds a file twice, a strange name, or too much")
        for entry in entries:
            self._files[entry.filename] = archive.read(entry)
