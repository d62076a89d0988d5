"""The section `[output]`."""

from typing import Annotated, Literal

from remit.settings.section import About, Section


class OutputSettings(Section, frozen=True):
    """What commands print."""

    color: Annotated[
        Literal["auto", "always", "never"],
        About(
            "When to use colour; auto: on a terminal. Any `NO_COLOR` means never, any `FORCE_COLOR` means always.",
            env=("NO_COLOR", "FORCE_COLOR"),
            fixed={"NO_COLOR": "never", "FORCE_COLOR": "always"},  # no-color.org, force-color.org
        ),
    ] = "auto"
