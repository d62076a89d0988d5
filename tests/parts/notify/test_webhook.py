"""A message is posted once, signed, to where the settings say and nowhere else."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from typing import Any

import msgspec
import pytest

from remit.parts.notify.sender import AttemptEnd, Notice, Sender
from remit.parts.notify.target import NotifyTarget
from remit_testing.clock import START, ManualClock
from tests.parts.notify.servers import Hook, running_hook

MESSAGE = Notice(
    id="n_1", event="question", at="2026-01-01T00:00:00Z", title="x <waits> & more", url="https://r.example/inbox/c"
)
KEY = b"0123456789abcdef"
SECRET = f"whsec_{base64.b64encode(KEY).decode()}"


def to(hook: Hook, **keys: Any) -> NotifyTarget:
    return msgspec.convert({"name": "oncall", "url": hook.url, **keys}, NotifyTarget)


async def send(target: NotifyTarget, **environ: str) -> AttemptEnd:
    return await Sender(environ, ".", ManualClock()).send(target, MESSAGE)


async def test_the_whole_message_is_posted_as_json_under_its_key(hook: Hook) -> None:
    answer = await send(to(hook, headers={"Authorization": "Bearer ${TOKEN}"}), TOKEN="t-123")
    assert answer == AttemptEnd(ok=True, words="HTTP 200 OK")
    (posted,) = hook.posted
    assert msgspec.json.decode(posted.body, type=Notice) == MESSAGE
    assert (posted.path, posted.headers["content-type"]) == ("/hook", "application/json")
    assert (posted.headers["idempotency-key"], posted.headers["authorization"]) == ("n_1", "Bearer t-123")
    assert "webhook-signature" not in posted.headers


@pytest.mark.parametrize(("secret", "key"), [(SECRET, KEY), ("plain words", b"plain words")])
async def test_a_signature_covers_id_time_and_body(hook: Hook, secret: str, key: bytes) -> None:
    await send(to(hook, secret="${KEY}"), KEY=secret)
    (posted,) = hook.posted
    signed = f"n_1.{START // 1_000_000}.".encode() + posted.body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert posted.headers["webhook-signature"] == f"v1,{expected}"
    assert (posted.headers["webhook-id"], posted.headers["webhook-timestamp"]) == ("n_1", str(START // 1_000_000))


async def test_slack_gets_a_text_that_no_value_can_turn_into_markup(hook: Hook) -> None:
    hostile = "*bold* `code` ``` https://evil.example/approve <!channel>\n_more_"
    message = msgspec.structs.replace(MESSAGE, arguments=hostile)
    await Sender({}, ".", ManualClock()).send(to(hook, format="slack"), message)
    (posted,) = hook.posted
    assert list(posted.json) == ["text"]
    before, block, after = posted.json["text"].split("```")
    assert before == "*x &lt;waits&gt; &amp; more*\n"
    assert "https://evil.example/approve &lt;!channel&gt;" in block, "a block of code has no links"
    assert after == "\n<https://r.example/inbox/c|Open in Remit>"


REFUSED = [
    ((500, {}, b"out of order"), AttemptEnd(ok=False, words="HTTP 500 Internal Server Error: out of order")),
    ((429, {"Retry-After": "120"}, b""), AttemptEnd(ok=False, words="HTTP 429 Too Many Requests", pause_s=120)),
    ((302, {"Location": "http://127.0.0.1:9/"}, b""), AttemptEnd(ok=False, words="HTTP 302 Found")),
]


@pytest.mark.parametrize(("given", "expected"), REFUSED, ids=[str(given[0]) for given, _ in REFUSED])
async def test_any_other_answer_is_a_failure(
    hook: Hook, given: tuple[int, dict[str, str], bytes], expected: AttemptEnd
) -> None:
    hook.answers = [given]
    assert await send(to(hook)) == expected
    assert len(hook.posted) == 1


async def test_what_comes_back_is_cut_and_holds_no_secret(hook: Hook) -> None:
    hook.answers = [(400, {}, f"bad key hunter22 for {hook.url} ".encode() * 10_000)]
    answer = await send(to(hook, secret="${KEY}"), KEY="hunter22")
    assert "hunter22" not in answer.words
    assert hook.url not in answer.words
    assert len(answer.words) <= 200


async def test_no_proxy_of_the_environment_is_asked(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_hook() as proxy:
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setitem(os.environ, name, proxy.url.removesuffix("/hook"))
        assert (await send(to(hook))).ok
        assert (len(hook.posted), len(proxy.posted)) == (1, 0)


UNUSABLE = [
    "http://example.com/x",
    "ftp://127.0.0.1/x",
    "https://user:word@example.com/",
    "https://",
    "http://[::1",
    "http://127.0.0.1/a b",
]


@pytest.mark.parametrize("url", UNUSABLE)
async def test_a_url_from_the_environment_is_checked_too(url: str) -> None:
    target = msgspec.convert({"name": "oncall", "url": "${HOOK}"}, NotifyTarget)
    answer = await send(target, HOOK=url)
    assert not answer.ok
    assert answer.words.startswith("notify oncall: url ")


async def test_a_server_that_is_away_is_a_failure(hook: Hook) -> None:
    target = to(hook)
    hook.server.server_close()
    answer = await send(target)
    assert not answer.ok
    assert answer.words.startswith(("ConnectionRefusedError", "ConnectionResetError"))


async def test_a_variable_that_is_not_set_is_named(hook: Hook) -> None:
    answer = await send(to(hook, secret="${NOT_THERE}"))
    assert answer.words == "notify oncall needs the environment variable NOT_THERE, which is not set"


async def test_teams_gets_a_card_with_a_link_and_nothing_that_is_markup(hook: Hook) -> None:
    message = msgspec.structs.replace(MESSAGE, arguments="[approve](https://evil.example)")
    await Sender({}, ".", ManualClock()).send(to(hook, format="teams"), message)
    (posted,) = hook.posted
    (attachment,) = posted.json["attachments"]
    card = attachment["content"]
    assert {block["type"] for block in card["body"]} == {"RichTextBlock"}, "its texts are shown as they are"
    texts = [run["text"] for block in card["body"] for run in block["inlines"]]
    assert texts == ["x <waits> & more", "Arguments: [approve](https://evil.example)"]
    assert card["actions"] == [{"type": "Action.OpenUrl", "title": "Open in Remit", "url": "https://r.example/inbox/c"}]


async def test_ntfy_gets_a_notice_of_its_topic_that_opens_the_console(hook: Hook) -> None:
    await send(to(hook, format="ntfy"))
    (posted,) = hook.posted
    assert posted.path == "/"
    assert posted.json == {
        "topic": "hook",
        "title": "x <waits> & more",
        "message": "x <waits> & more",
        "click": "https://r.example/inbox/c",
    }
