"""The section `[audit]`."""

from typing import Annotated, Literal

from remit.settings.section import About, Section
from remit.settings.signing import KeyCommand, key_about


class AuditSettings(Section, frozen=True):
    """Evidence of what was recorded."""

    reads: Annotated[
        Literal["off", "values", "all"],
        About(
            "Record who reads over HTTP and on pages, and exports by command: `values`, what names a job, step, "
            "question or file; `all`, lists and searches too. Each is recorded before the answer leaves."
        ),
    ] = "off"
    key: Annotated[str, key_about()] = ""
    key_command: KeyCommand = ()
