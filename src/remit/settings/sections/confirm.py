"""The section `[confirm]`."""

from __future__ import annotations

from typing import Annotated, Literal

from remit.settings.base import Base
from remit.settings.section import About, Count, Seconds, Section


def _path(path: str, base: Base) -> str:
    return str(base.path(path)) if path else ""


class ConfirmSettings(Section, frozen=True):
    """How people are asked."""

    expires_seconds: Annotated[
        Seconds,
        About("How long a question may stay unanswered; after that the call is refused."),
    ] = 86_400
    max_open: Annotated[
        Count,
        About(
            "How many calls of one principal may wait for an answer at a time. One more is refused with "
            "`TOO_MANY_QUESTIONS`, so that no one's questions push those of others aside."
        ),
    ] = 500
    proof: Annotated[
        Literal["any", "terminal", "token", "signed"],
        About(
            "What an approval has to prove before it counts here: nothing, that it was typed at a terminal, that it "
            "came over HTTP with a token of someone else than the requester, or the SSH signature of such a person."
        ),
    ] = "any"
    allowed_signers: Annotated[
        str,
        About(
            "The file of the people who may sign, and their keys, as `ssh-keygen` reads it; outside the project "
            "folder.",
            resolve=_path,
        ),
    ] = ""
    own: Annotated[
        bool, About("Whether, with the proofs `token` and `signed`, the one who asked for a call may also approve it.")
    ] = False
