"""The client of a log of anchors, such as `remit witness` keeps: what it says is believed as far as it proves it.

Posts to servers that settings name: a collector, a log of anchors.
"""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.errors import SettingsError
from remit.evidence.anchors import signed_text
from remit.evidence.note import NoteKey, decoded, encoded
from remit.evidence.proofs import is_leaf, is_prefix
from remit.journal.signing_key import is_signature
from remit.parts.audit.formats.ael_anchors import LogAnswer
from remit.parts.audit.formats.keys import OperatorSigner, fingerprint
from remit.redact import line

if TYPE_CHECKING:
    from remit.parts.audit.settings import AuditSettings


_TOLD: Final = 200
"""Bytes of a refusal that are shown."""


def post(url: str, body: bytes, headers: Mapping[str, str], timeout_s: float, longest: int) -> bytes:
    """Return what a server answers, so many bytes at most. Redirections are not followed.

    Raise OSError if there is no answer, or not a good one: HTTPError, with what the server said, if it said so.
    """
    request = urllib.request.Request(url, body, dict(headers))  # noqa: S310 - the caller looked at its scheme
    try:
        with _OPENER.open(request, timeout=timeout_s) as response:
            answer: bytes = response.read(longest)
            return answer
    except urllib.error.HTTPError as error:
        with error:
            error.msg = line(error.read(_TOLD).decode(errors="replace")) or error.msg
        raise
    except urllib.error.URLError as error:
        raise ConnectionError(str(error.reason)) from error
    except http.client.HTTPException as error:  # what answers speaks another language
        raise ConnectionError(f"no answer of HTTP: {type(error).__name__}") from error


class _Direct(urllib.request.HTTPRedirectHandler):
    """Follows no redirection, for the headers may be secret."""

    def redirect_request(self, *_: Any) -> None:
        """Leave the answer as it is."""


_OPENER: Final = urllib.request.build_opener(_Direct)


_LONGEST: Final = 4 << 20
_SILENCE_S: Final = 10.0
_PUT_BACK: Final = "the log does not continue what it was: it was put back, or tells two histories"
_JSON: Final = {"content-type": "application/json"}


class _Signed(msgspec.Struct, frozen=True):
    log: str
    size: int
    root: str


class ProvenLog(msgspec.Struct, frozen=True):
    """The state of the log that was proven last."""

    size: int = 0
    root: str = ""


_read: Final = msgspec.json.Decoder(LogAnswer).decode


class AnchorClient:
    """A client of one log."""

    def __init__(self, url: str, key: NoteKey) -> None:
        self.url, self.key = url.rstrip("/"), key

    @classmethod
    def of(cls, own: AuditSettings) -> AnchorClient:
        """Return a client of the log that the settings name. Raise SettingsError."""
        try:
            return cls(own.anchor_url, NoteKey.parse(own.anchor_key))
        except ValueError as error:
            how = "Copy the log's key whole, as `remit witness` prints it: name+id+key."
            raise SettingsError(f"audit.anchor_key: {error}", remedy=how) from error

    @property
    def fingerprint(self) -> str:
        """The name of the log's key, as AEL has it."""
        return fingerprint(self.key.public)

    def register(self, leaves: Sequence[str], signer: OperatorSigner, known: ProvenLog) -> ProvenLog:
        """Add hashes of records, `MOST` of remit.evidence.anchors at most; return the log as it is then, after `known`.

        Raise OSError if it does not take them, and ValueError for an answer that proves less.
        """
        signature = encoded(signer.sign(signed_text(leaves)))
        request = {"key": signer.name, "leaves": leaves, "signature": signature, "old": known.size}
        try:
            answer = self._ask("register", request)
        except urllib.error.HTTPError as error:
            if error.code == HTTPStatus.CONFLICT:
                raise ValueError(_PUT_BACK) from error
            raise
        head, hashes = answer.tree_head, [bytes.fromhex(node) for node in answer.proof]
        if not is_prefix(known.size, bytes.fromhex(known.root), head.size, bytes.fromhex(head.root), hashes):
            raise ValueError(_PUT_BACK)
        return ProvenLog(head.size, head.root)

    def prove(self, leaves: Sequence[str]) -> LogAnswer:
        """Return where hashes of records stand in the log, those that do, as many at most. Raise as `register`."""
        answer = self._ask("prove", {"leaves": leaves})
        head = answer.tree_head
        for entry in answer.entries:
            proof = [bytes.fromhex(step) for step in entry.proof]
            if not is_leaf(bytes.fromhex(entry.leaf), entry.index, head.size, bytes.fromhex(head.root), proof):
                raise ValueError("the log says of a record that it holds it, and does not prove it")
        return answer

    def _ask(self, path: str, request: Mapping[str, object]) -> LogAnswer:
        """Return an answer whose head the log has signed."""
        body = post(f"{self.url}/anchors/{path}", msgspec.json.encode(request), _JSON, _SILENCE_S, _LONGEST)
        answer = _read(body)  # a DecodeError is a ValueError
        head, text = answer.tree_head, decoded(answer.tree_head.signed)
        signed = msgspec.json.decode(text, type=_Signed)
        is_of = (signed.log, signed.size, signed.root) == (answer.log, head.size, head.root)
        if not is_of or not is_signature(decoded(head.sig), text, self.key.public):
            raise ValueError("the log's answer is not signed by audit.anchor_key")
        return answer
