"""The proof that an approval has to bring before it counts, where the call runs.

| mode | what counts |
|---|---|
| `any` | any answer: anyone who can write to the journal can give one |
| `terminal` | an answer typed at a terminal, or a stronger one; it keeps scripts from answering by mistake |
| `channel` | an answer on a channel such as Slack, which proves whose account it is, or a stronger one |
| `token` | an answer over HTTP with a token whose principal did not ask, or a signed one |
| `signed` | an answer signed with an SSH key that `allowed_signers` names, by someone who did not ask |

Only a signature can be checked after the fact: the journal holds it, and no process that lacks the key can make it.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import tempfile
from base64 import b64decode
from binascii import Error as NotBase64Error
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from remit.canonical import canonical, sha256
from remit.clock import SECOND, SystemClock
from remit.errors import UsageError
from remit.journal.kinds.payload import UNSET

if TYPE_CHECKING:
    from remit.journal.kinds import ConfirmationDecided, ConfirmationRequested
    from remit.journal.kinds.people import Extension

ProofMode = Literal["any", "terminal", "channel", "token", "signed"]
ProofKind = Literal["", "terminal", "channel", "token"]
"""The way in which an answer was given, as the face that took it says."""
NAMESPACE: Final = "remit-approval"
"""The namespace of signatures, so that none that was made for something else counts."""
_ACCEPTED: Final[dict[ProofMode, frozenset[str]]] = {
    "terminal": frozenset({"terminal", "channel", "token"}),
    "channel": frozenset({"channel", "token"}),
    "token": frozenset({"token"}),
    "signed": frozenset(),
}
_log: Final = logging.getLogger("remit.gateway")
_KEPT: Final = 1_000
_FRESH: Final = 60 * SECOND
"""The time that a verdict on a key that is valid now is kept, since keys may end at a time."""
_LONGEST: Final = 16_384
_PATIENCE_S: Final = 30.0
_PROGRAM: Final = "ssh-keygen"
_KEY_AT: Final = len(b"SSHSIG") + 4 + 4
"""Where the public key begins: behind a word, a version and its own length."""


def statement(
    confirmation: str, digest: str, decision: str, by: str, remember: Extension | msgspec.UnsetType = UNSET
) -> bytes:
    """The bytes that are signed: which answer, to which exact call and for which later ones, in whose name."""
    fields = {"remit": "approval-1", "confirmation": confirmation, "digest": digest, "decision": decision, "by": by}
    return canonical(fields if remember is UNSET else {**fields, "remember": msgspec.to_builtins(remember)})


class Proofs:
    """Says which approvals count."""

    def __init__(self, mode: ProofMode = "any", signers: Path | None = None, *, own: bool = False) -> None:
        self.mode = mode
        self.signers = signers
        self._own = own
        self._verified: dict[tuple[object, ...], bool] = {}

    @property
    def words(self) -> str:
        """Return how an approval has to be given, for people."""
        return _WORDS.get(self.mode, "given")

    def takes(self, kind: ProofKind) -> bool:
        """Return whether approvals that are given so can count."""
        return self.mode == "any" or kind in _ACCEPTED[self.mode]

    async def refusal(self, request: ConfirmationRequested, decided: ConfirmationDecided, at: int | None = None) -> str:
        """Return why an approval does not count; empty: it does.

        A key counts if it is valid now, or was `at` that moment, in microseconds since the Unix epoch.
        """
        if self.mode == "any":
            return ""
        if self.mode != "terminal" and not self._own and decided.by == request.principal:
            return f"{decided.by} requested this call and cannot approve it"
        if decided.proof in _ACCEPTED[self.mode]:
            return ""
        if not decided.signature:
            return f"an approval must be {_WORDS[self.mode]}"
        return "" if await self.signed(request, decided, at) else f"the signature is not by {decided.by}"

    async def counted(
        self, request: ConfirmationRequested, approvals: Iterable[tuple[ConfirmationDecided, int | None]]
    ) -> list[ConfirmationDecided]:
        """Those of these approvals, each with when it was given, that count: no key stands for two people."""
        keys: dict[bytes, str] = {}
        confirmation_decideds: list[ConfirmationDecided] = []
        for decision, at in approvals:
            key = key_of(decision.signature) if self.mode != "any" else b""
            if not await self.refusal(request, decision, at) and (
                not key or keys.setdefault(key, decision.by) == decision.by
            ):
                confirmation_decideds.append(decision)
        return confirmation_decideds

    async def signed(self, request: ConfirmationRequested, decided: ConfirmationDecided, at: int | None = None) -> bool:
        """Say whether an answer is signed by the person that it names, with a key that is valid now, or was then."""
        text = statement(request.confirmation, request.digest, decided.decision, decided.by, decided.remember)
        return await self._holds(text, decided.signature, decided.by, at)

    async def _holds(self, text: bytes, signature: str, by: str, at: int | None) -> bool:
        if self.signers is None or len(signature) > _LONGEST or not by or by.startswith("-"):
            return False
        try:
            signers = await asyncio.to_thread(self.signers.read_bytes)
        except OSError as error:
            _log.warning("%s cannot be read, so no signature counts: %s", self.signers, error.strerror)
            return False
        moment = SystemClock().now() // _FRESH if at is None else at  # ssh-keygen reads the machine's clock too
        key = (text, signature, at is None, moment, sha256(signers))
        known = self._verified.get(key)
        if known is None:
            known = await _verified(text, signature, by, self.signers, at)
            if len(self._verified) >= _KEPT:
                self._verified.clear()
            self._verified[key] = known
        return known


def key_of(signature: str) -> bytes:
    """The public key that a signature says it was made with (PROTOCOL.sshsig, "Blob format"); empty if it has none."""
    body = "".join(line for line in signature.splitlines() if not line.startswith("-----"))
    try:
        blob = b64decode(body, validate=True)
    except (NotBase64Error, ValueError):
        return b""
    size = int.from_bytes(blob[_KEY_AT - 4 : _KEY_AT], "big")
    return blob[_KEY_AT : _KEY_AT + size]


_WORDS: Final[dict[ProofMode, str]] = {
    "terminal": "typed at a terminal",
    "channel": "given on a channel such as Slack, over HTTP with a token, or signed",
    "token": "given over HTTP with a token, or signed",
    "signed": "signed",
}


async def signed(text: bytes, key: Path) -> str:
    """The signature of a text under an SSH key: a private key, or the public one of a key in the agent.

    Raises UsageError if there is none.
    """
    status, out = await _ran(["-Y", "sign", "-n", NAMESPACE, "-f", str(key)], text)
    if status:
        raise UsageError(
            f"{key} signs nothing", remedy="Name an SSH key of yours; `ssh-add -L` lists those of the agent."
        )
    return out.decode()


async def _verified(text: bytes, signature: str, by: str, signers: Path, at: int | None) -> bool:
    with tempfile.NamedTemporaryFile(suffix=".sig") as file:
        file.write(signature.encode())
        file.flush()
        words = ["-Y", "verify", "-f", str(signers), "-I", by, "-n", NAMESPACE, "-s", file.name]
        if at is not None:  # in local time: older versions know no other
            words += ["-O", f"verify-time={datetime.fromtimestamp(at / SECOND):%Y%m%d%H%M%S}"]  # noqa: DTZ006 - ssh-keygen reads local time
        status, _ = await _ran(words, text)
    return status == 0


async def _ran(words: list[str], stdin: bytes) -> tuple[int, bytes]:
    program = shutil.which(_PROGRAM)
    if program is None:
        raise UsageError(
            f"{_PROGRAM} is not installed", remedy="Install OpenSSH, or set confirm.proof to another mode."
        )
    child = await asyncio.create_subprocess_exec(
        program,
        *words,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(_PATIENCE_S):
            out, _ = await child.communicate(stdin)
    except TimeoutError:
        child.kill()
        await child.wait()
        return 1, b""
    return child.returncode or 0, out
