"""Why a model gave no reply, and what that means for the next attempt.

ModelFault
├── Busy           too many requests or tokens for now
├── Quota          the account's limit or credit is used up
├── Overloaded     the provider has no capacity
├── Server         the provider failed, or answered nonsense
├── Cut            the answer broke off before the wire said that it is complete
├── Timeout        nothing came for too long
├── Rejected       the provider does not accept the request
├── ContextFull    the conversation does not fit into the model's context
├── Auth           the key is missing, wrong, or may not do this
└── UnknownModel   the provider does not have the model
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, Literal

from remit.codes import Code
from remit.redact import line

Retry = Literal["none", "now", "at"]
Billed = Literal["no", "maybe"]
_REASON: Final = 500


class ModelFault(Exception):  # noqa: N818 - a fault of the provider or of the request, named as people say it
    """A model gave no reply.

    `reason` is for people; `after_s` are the seconds that the provider wants to be left alone, if it says so. `unsent`:
    the provider certainly did not get the request, so it cannot charge for it.
    """

    code: ClassVar[Code] = Code.MODEL_FAILED
    retry: Retry = "none"
    """Whether asking again can help: not as it is, soon, or at the time that the provider names."""
    billed: Billed = "no"
    """Whether the provider may charge for it."""

    def __init__(
        self,
        reason: str,
        *,
        after_s: float | None = None,
        status: int = 0,
        request_id: str = "",
        unsent: bool = False,
    ) -> None:
        if unsent:
            self.billed = "no"
        self.reason = line(reason or self.code.meaning, _REASON)
        self.after_s = after_s
        self.status = status
        self.request_id = request_id
        super().__init__(self.reason)


class Busy(ModelFault):
    """There were too many requests or tokens for now."""

    code = Code.MODEL_BUSY
    retry: Retry = "at"


class Quota(ModelFault):
    """The account's limit or credit is used up."""

    code = Code.MODEL_QUOTA


class Overloaded(ModelFault):
    """The provider has no capacity."""

    code = Code.MODEL_OVERLOADED
    retry: Retry = "at"


class ServerFault(ModelFault):
    """The provider failed, or sent an answer that cannot be read."""

    code = Code.MODEL_FAILED
    retry: Retry = "now"
    billed: Billed = "maybe"


class CutAnswer(ModelFault):
    """The answer broke off."""

    code = Code.MODEL_CUT
    retry: Retry = "now"
    billed: Billed = "maybe"


class Timeout(ModelFault):
    """Nothing came for too long."""

    code = Code.MODEL_TIMEOUT
    retry: Retry = "now"
    billed: Billed = "maybe"


class Rejected(ModelFault):
    """The provider does not accept the request."""

    code = Code.MODEL_REJECTED


class ContextFull(ModelFault):
    """The conversation does not fit into the model's context."""

    code = Code.MODEL_CONTEXT_FULL


class Auth(ModelFault):
    """The key is missing, wrong, or may not do this."""

    code = Code.MODEL_AUTH


class UnknownModel(ModelFault):
    """The provider does not have the model."""

    code = Code.MODEL_UNKNOWN


FAULTS: Final[Mapping[str, type[ModelFault]]] = {
    "busy": Busy,
    "quota": Quota,
    "overloaded": Overloaded,
    "server": ServerFault,
    "cut": CutAnswer,
    "timeout": Timeout,
    "rejected": Rejected,
    "context_full": ContextFull,
    "auth": Auth,
    "unknown_model": UnknownModel,
}
"""Every fault by its name in a script."""

_BY_STATUS: Final[Mapping[int, type[ModelFault]]] = {
    401: Auth,
    402: Quota,
    403: Auth,
    404: UnknownModel,
    408: Timeout,
    413: ContextFull,
    429: Busy,
    503: Overloaded,
    504: Timeout,
    529: Overloaded,
}
_SERVER_FAILS: Final = 500


def by_status(status: int) -> type[ModelFault]:
    """Return what an HTTP status means if the body says nothing more."""
    return _BY_STATUS.get(status) or (ServerFault if status >= _SERVER_FAILS else Rejected)
