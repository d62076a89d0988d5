"""The section `[[runners]]`."""

import os
from typing import Annotated, Any, ClassVar

import msgspec

from remit.settings import pictures
from remit.settings.expansion import expand
from remit.settings.section import About, Section, Tables, Texts, converted


class RunnerSettings(Section, frozen=True):
    """Servers of Remit that run tools for this one: each `[[runners]]` table is one, or several behind a balancer."""

    array: ClassVar[str] = "entries"

    entries: Annotated[
        Tables,
        About(
            "The runners, one `[[runners]]` table each with `name`, `url`, `token` and `serves`, see "
            "[limits](limits.md#runners). A JSON array in the environment.",
            env=("REMIT_RUNNERS",),
            entry="remit.providers.runners.settings:RunnerEntry",
            picture=pictures.runners,
        ),
    ] = ()


class RunnerEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One runner."""

    name: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9_]{1,40}$", description="1 to 40 of a-z, 0-9 and _")]
    url: str
    """Its address; https, unless it is on this machine."""
    serves: Annotated[Texts, msgspec.Meta(min_length=1)]
    """Patterns of the tools that it runs, such as `sandbox.*`; nothing else offers these."""
    token: str = ""
    """A token of its `[[clients]]` with the scopes `read` and `call`; `${NAME}` takes it from the environment."""

    @property
    def provider_id(self) -> str:
        """Return the id of its provider."""
        return f"runner_{self.name}"

    def __repr__(self) -> str:
        """Leave the token out."""
        return f"RunnerEntry(name={self.name!r}, serves={self.serves!r})"


def entries_of(tables: tuple[dict[str, Any], ...]) -> list[RunnerEntry]:
    """The runners. Raises SettingsError."""
    entries = []
    for number, table in enumerate(tables, 1):
        entry = converted(table, RunnerEntry, f"runner {number}")
        token = expand(entry.token, os.environ, f"runner {entry.name}")
        entries.append(msgspec.structs.replace(entry, token=token))
    return entries
