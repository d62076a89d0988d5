from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.errors import NotCanonicalError
from remit.models.message import (
    Block,
    Message,
    Opaque,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
    decode,
    digest_of,
    encode,
    user,
)
from remit.models.thread import EMPTY, thread_of

_TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
_BLOCKS: st.SearchStrategy[Block] = st.one_of(
    st.builds(Text, _TEXT, _TEXT),
    st.builds(Refusal, _TEXT),
    st.builds(ToolCall, _TEXT, _TEXT, _TEXT, _TEXT, _TEXT),
    st.builds(ToolResult, _TEXT, _TEXT, _TEXT, st.booleans()),
    st.builds(Opaque, _TEXT),
)
_ROLES = st.sampled_from(["system", "user", "assistant", "tool"])
_MESSAGES = st.builds(Message, _ROLES, st.lists(_BLOCKS, max_size=3).map(tuple), _TEXT, st.integers(0, 9))


@given(_MESSAGES)
def test_a_message_comes_back_from_its_bytes(message: Message) -> None:
    assert decode(encode(message)) == message


@given(st.lists(_MESSAGES, max_size=6))
def test_a_thread_gives_back_its_messages_and_one_digest_names_them(messages: list[Message]) -> None:
    thread = thread_of(messages)
    assert thread.messages() == messages
    assert len(thread) == len(messages)
    assert thread.tip == thread_of(messages).tip
    assert thread.add(user("more")).tip != thread.tip


def test_the_order_of_messages_counts() -> None:
    assert thread_of([user("a"), user("b")]).tip != thread_of([user("b"), user("a")]).tip


def test_only_what_was_added_since_a_known_tip_is_listed() -> None:
    before = thread_of([user("a"), user("b")])
    after = before.add(user("c"), user("d"))
    assert [node.digest for node in after.since(lambda tip: tip == before.tip)] == [
        digest_of(user("c")),
        digest_of(user("d")),
    ]
    assert after.since(lambda _: True) == []
    assert EMPTY.messages() == []


def test_text_that_utf8_cannot_hold_is_refused() -> None:
    with pytest.raises(NotCanonicalError):
        EMPTY.add(user("\ud800"))
