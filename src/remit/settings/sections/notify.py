"""The section `[[notify]]`."""

from typing import Annotated, ClassVar

from remit.settings import pictures
from remit.settings.section import About, Section, Tables


class NotifySettings(Section, frozen=True):
    """Who is told when a question waits or a job cannot go on: each `[[notify]]` table is one target."""

    array: ClassVar[str] = "targets"

    targets: Annotated[
        Tables,
        About(
            "The targets, one `[[notify]]` table each; [notifications.md](notifications.md) explains their keys. "
            "A JSON array in the environment.",
            env=("REMIT_NOTIFY",),
            picture=pictures.targets,
        ),
    ] = ()
