"""A model's answer out of its event: live and replayed answers are made by the same function."""

from __future__ import annotations

import msgspec

from remit.journal.kinds import CommandCommitted
from remit.models.message import Message
from remit.models.reply import Reply, Stop, Usage


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded answer."""

    reply: Reply
    provider: str
    cost: float | None = None
    """US dollars, estimated; None: no price is known."""


def answered(event: CommandCommitted, message: Message) -> Answered:
    """The answer of an event whose result is `message`."""
    usage = Usage(
        input=event.input_tokens,
        output=event.output_tokens,
        cached=event.cached_tokens,
        cache_written=event.cache_written_tokens,
        reasoning=event.reasoning_tokens,
    )
    reply = Reply(
        message=message,
        stop=msgspec.convert(event.finish_reason, Stop),
        stop_raw=event.finish_raw,
        usage=None if event.uncertain else usage,
        usage_raw=event.usage,
        model=event.llm_model,
        response_id=event.response_id,
        request_id=event.request_id,
        first_us=None if event.first_token_ms is None else round(event.first_token_ms * 1_000),
        duration_us=round(event.duration_ms * 1_000),
    )
    return Answered(reply=reply, provider=event.llm_provider, cost=event.cost)
