"""The section `[audit]`."""

from collections.abc import Iterator
from typing import Annotated, Literal

from remit.settings.pictures import address, url, url_or_empty
from remit.settings.section import About, KeyCommand, Section, key_about


def _claims(value: object) -> Iterator[str]:
    yield f"register hashes of records at {address(str(value))}"


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
    anchor_url: Annotated[
        str,
        About(
            "The URL of a log, such as `remit witness`, in which records of calls over MCP are registered as they are "
            "signed. It needs `key` and a recorder.",
            picture=url,
            resolve=url_or_empty,
            claims=_claims,
        ),
    ] = ""
    anchor_key: Annotated[str, About("The log's public key, as `remit witness` prints it.")] = ""
