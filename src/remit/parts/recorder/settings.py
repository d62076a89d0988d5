"""The section `[recorder]`."""

from typing import Annotated

import msgspec

from remit.redact import MASK
from remit.settings.file import Base
from remit.settings.pictures import command as program
from remit.settings.pictures import url as place_of_url
from remit.settings.pictures import url_or_empty
from remit.settings.section import About, Count, KeyCommand, Seconds, Section, Texts, key_about, place


def _secret(value: object) -> object:
    return value if isinstance(value, str) and (not value or value.startswith("${")) else MASK


def _place(value: str, base: Base) -> str:
    return value if value.startswith("${") else url_or_empty(value, base)


class RecorderSettings(Section, frozen=True):
    """A recorder that signs what the journal says, beside `remit serve` and `remit worker`."""

    origin: Annotated[
        str,
        About(
            "The name of the log and of its key, such as `example.com/agents`. Empty: nothing is signed. A new name "
            "begins a new log."
        ),
    ] = ""
    key: Annotated[
        str,
        key_about("Former keys may follow it. Empty: the file in your data folder that `remit recorder key` makes."),
    ] = ""
    key_command: KeyCommand = ()
    every_events: Annotated[Count, About("A checkpoint is signed after so many events, once a second at most.")] = 1_000
    every_seconds: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=86_400)],
        About("A checkpoint is signed after this time, also if nothing happened."),
    ] = 60
    session_seconds: Annotated[
        Annotated[int, msgspec.Meta(ge=60, le=86_400)],
        About("A session ends after this time, and the next one begins. Runs of AEL are closed with their session."),
    ] = 86_400
    file: Annotated[
        str, About("A file that each checkpoint is appended to, best on another machine's disk.", resolve=place)
    ] = ""
    command: Annotated[
        Texts, About("A program and its arguments that get each checkpoint on stdin.", picture=program)
    ] = ()
    url: Annotated[str, About("Where each checkpoint is posted to.", picture=place_of_url, resolve=_place)] = ""
    token: Annotated[
        str, About("The bearer token for `url`, as `${NAME}` for one in the environment.", picture=_secret)
    ] = ""
    witness: Annotated[
        str,
        About(
            "The URL of a witness, such as `remit witness`, that cosigns each checkpoint.",
            picture=place_of_url,
            resolve=_place,
        ),
    ] = ""
    witness_key: Annotated[
        str, About("The witness's public key, as `remit witness` prints it. `remit verify` checks its cosignatures.")
    ] = ""
    stamp_url: Annotated[
        str,
        About(
            "The URL of an authority that stamps checkpoints with the time (RFC 3161).",
            picture=place_of_url,
            resolve=_place,
        ),
    ] = ""
    stamp_seconds: Annotated[Seconds, About("A checkpoint is stamped after this time, and the last one.")] = 3_600
    stamp_roots: Annotated[
        str,
        About("A PEM file of the authority's root certificates. `remit verify` checks stamps by them.", resolve=place),
    ] = ""
