"""The section `[[retention]]`."""

from typing import Annotated, ClassVar

from remit.settings.section import About, Section, Tables


class RetentionSettings(Section, frozen=True):
    """How long records are kept: each `[[retention]]` table is one rule. Without any, they are kept for good."""

    array: ClassVar[str] = "rules"

    rules: Annotated[
        Tables,
        About(
            "The rules, one `[[retention]]` table each; [audit.md](audit.md#keeping-and-forgetting) explains their "
            "keys. A JSON array in the environment.",
            env=("REMIT_RETENTION",),
            entry="remit.parts.retention.rule:RetentionRule",
        ),
    ] = ()
