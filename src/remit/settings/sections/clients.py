"""The section `[[clients]]`."""

from typing import Annotated, ClassVar

from remit.settings import pictures
from remit.settings.section import About, Section, Tables


class ClientSettings(Section, frozen=True):
    """Who may connect over HTTP: each `[[clients]]` table is one client."""

    array: ClassVar[str] = "entries"

    entries: Annotated[
        Tables,
        About(
            "The clients, one `[[clients]]` table each, as explained below. A JSON array in the environment.",
            env=("REMIT_CLIENTS",),
            picture=pictures.clients,
        ),
    ] = ()
