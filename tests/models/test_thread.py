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
    ToolMessage,
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
    st.builds(ToolMessage, _TEXT, _TEXT, _TEXT, st.booleans()),
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


_IDS = st.sampled_from(["1-0", "1-12", "2/1-0", "a-b-0", "-", "7", "", "1"])
_CALLING = st.builds(
    Message,
    _ROLES,
    st.lists(st.builds(ToolCall, _IDS, _TEXT, _TEXT), max_size=2).map(tuple),
    _TEXT,
    st.integers(0, 2),
)


@given(st.lists(_CALLING, max_size=6), st.lists(st.tuples(st.integers(0, 6), st.sampled_from(["1", "2/1", "a", ""]))))
def test_a_thread_knows_how_calls_in_it_begin_in_whatever_order_it_is_asked(
    messages: list[Message], questions: list[tuple[int, str]]
) -> None:
    threads = [EMPTY]
    for message in messages:
        threads.append(threads[-1].add(message))
    for length, beginning in questions:
        held = messages[:length]
        begins = any(call.id.startswith(f"{beginning}-") for message in held for call in message.calls)
        assert threads[min(length, len(messages))].has_calls_of(beginning) is begins


@given(st.lists(_CALLING, max_size=6))
def test_a_thread_counts_its_bytes_and_answers(messages: list[Message]) -> None:
    thread = thread_of(messages)
    replies = sum(message.role == "assistant" for message in messages)
    assert thread.size == sum(len(encode(message)) for message in messages)
    assert (thread.replies, thread.answers) == (replies, replies + sum(message.replaces for message in messages))
