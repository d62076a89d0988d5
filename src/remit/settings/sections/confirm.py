"""The section `[confirm]`."""

from typing import Annotated, Literal

from remit.settings.base import Base
from remit.settings.section import About, Count, Seconds, Section


def _path(path: str, base: Base) -> str:
    return str(base.path(path)) if path else ""


class ConfirmSettings(Section, frozen=True):
    """How people are asked."""

    expires_seconds: Annotated[
        Seconds,
        About("Seconds that a question stays open; after that the call is refused."),
    ] = 86_400
    max_open: Annotated[
        Count,
        About(
            "How many calls of one principal may wait for an answer at a time. The next is refused with "
            "`TOO_MANY_QUESTIONS`, or its job waits, so no principal can crowd out the questions of others."
        ),
    ] = 500
    proof: Annotated[
        Literal["any", "terminal", "token", "signed"],
        About(
            "The proof that an approval needs: any, none; terminal, typed at a terminal; token, sent over HTTP "
            "with a token of someone other than the requester; signed, an SSH signature of such a person."
        ),
    ] = "any"
    allowed_signers: Annotated[
        str,
        About(
            "The file that lists who may sign, and their keys, in the format of `ssh-keygen`. Keep it outside the "
            "project folder.",
            resolve=_path,
        ),
    ] = ""
    own: Annotated[
        bool, About("Whether, with the proofs `token` and `signed`, requesters may approve their own calls.")
    ] = False
