"""Previews and other words for people: short, on one line, without secrets."""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from remit.redact import LENGTH, MASK, line, mask, preview, preview_of, words_of
from remit.redact.clues import kinds

SECRET = "Zq7Rk2Vx9Tm4Lp"  # nothing else in these tests looks like it
NAMES = [
    *("password", "passwd", "PASSWORD", "db_password", "passphrase", "pwd", "secret", "client_secret", "secretKey"),
    *("token", "access_token", "refreshToken", "X-Auth-Token", "api_key", "apikey", "apiKey", "x-api-key", "API KEY"),
    *("Authorization", "cookie", "Set-Cookie", "credentials", "private_key", "signing-key", "jwt", "bearer"),
]
TOKENS = [
    *(f"sk-{SECRET}{SECRET}", f"sk-proj-{SECRET}", f"sk_live_{SECRET}{SECRET}", f"ghp_{SECRET}{SECRET}"),
    *(f"github_pat_{SECRET}{SECRET}", f"glpat-{SECRET}{SECRET}", f"xoxb-{SECRET}", f"AKIA{SECRET.upper()}AB"),
    *(f"AIza{SECRET}{SECRET}{SECRET}", f"hf_{SECRET}{SECRET}{SECRET}", f"npm_{SECRET}{SECRET}{SECRET}"),
    *(f"eyJ{SECRET}.{SECRET}.{SECRET}", f"Bearer {SECRET}", f"basic {SECRET}==", f"https://user:{SECRET}@host/path"),
    f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n{SECRET}\n-----END RSA PRIVATE KEY-----",
    f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n{SECRET}",
]


def leaked(shown: str, part: int = 5) -> bool:
    """Whether as little as five characters of the secret can be seen."""
    pieces = [SECRET[at : at + part] for at in range(len(SECRET) - part + 1)]
    return any(piece in shown or piece.upper() in shown for piece in pieces)


def encoded(value: Any) -> bytes:
    return msgspec.json.encode(value)


# --- by name


@pytest.mark.parametrize("name", NAMES)
def test_what_a_secrets_name_holds_is_masked(name: str) -> None:
    assert preview(encoded({name: SECRET, "n": 1})) == f'{{"{name}":"{MASK}","n":1}}'


@pytest.mark.parametrize("value", [SECRET, [SECRET], {"a": SECRET, "b": [SECRET]}, 12345678, f'a"b\\{SECRET}', ""])
def test_whatever_shape_it_has(value: Any) -> None:
    assert preview_of({"password": value, "n": 1}) == f'{{"password":"{MASK}","n":1}}'


@pytest.mark.parametrize("value", [None, True, False])
def test_a_name_alone_says_nothing(value: object) -> None:
    assert preview_of({"password": value}) == encoded({"password": value}).decode()


@pytest.mark.parametrize("name", ["max_tokens", "token_count", "tokens", "tokenLimit", "token_usage"])
def test_numbers_of_tokens_are_no_secrets_but_tokens_are(name: str) -> None:
    assert preview_of({name: 4096}) == f'{{"{name}":4096}}'
    assert mask(f"{name}=4096, next") == f"{name}=4096, next"
    assert not leaked(preview_of({name: [SECRET]}))


@pytest.mark.parametrize(
    "value",
    [
        {"name": "password", "value": SECRET},
        {"value": SECRET, "key": "Authorization"},
        ["Authorization", SECRET],
        [["X-Api-Key", SECRET]],
        ["curl", "--password", SECRET, "-v"],
        ["curl", f"--token={SECRET}"],
    ],
    ids=repr,
)
def test_a_name_and_its_value_side_by_side(value: Any) -> None:
    assert not leaked(preview_of(value))
    assert not leaked(preview_of({"inner": json.dumps(value)}))


def test_a_list_of_words_is_no_pair() -> None:
    assert preview_of(["token", "user", "scope"]) == '["token","user","scope"]'


@pytest.mark.parametrize(
    "text",
    [
        f"password={SECRET}",
        f"password = {SECRET} next",
        f"PASSWORD: {SECRET}",
        f"password => {SECRET}",
        f"https://h/x?a=1&token={SECRET}&b=2",
        f"token%3D{SECRET}",
        f"GET / HTTP/1.1\r\nAuthorization: Digest {SECRET}, b={SECRET}\r\nHost: h",
        f"cookie: a={SECRET}; b={SECRET}",
        f"curl --password {SECRET} -v",
        f"run\\n--api-key {SECRET}",
        f'curl "--token", "{SECRET}"',
        f"{{'password': '{SECRET}', 'n': 1}}",
        f"{{'password': b'{SECRET}'}}",
        f"{{'password': ['{SECRET}', ('{SECRET}',)]}}",
        f"{{'password': '\\'{SECRET}'}}",
        f"{{password: '{SECRET}'}}",
        f'log: {{"password": "{SECRET}"}} done',
        f"&quot;password&quot;:&quot;{SECRET} {SECRET}&quot;",
        f"%22password%22%3A%22{SECRET}",
        f'"pass\\u0077ord": "{SECRET}"',
        f"{{\\u0022password\\u0022:\\u0022{SECRET}\\u0022}}",
        f'name="token" value="x" token[0]={SECRET}',
    ],
)
def test_names_in_any_text(text: str) -> None:
    assert not leaked(mask(text))
    assert not leaked(mask(f"é\n\t {text} \u202e"))
    assert not leaked(preview_of({"text": text}))
    assert not leaked(preview_of({"text": json.dumps({"text": text})}))


@pytest.mark.parametrize(
    "text",
    [
        "the password was wrong, and the token expired",
        'see "token" in the list',
        "token is none: ok",
        "a task-management-system, risk-assessment-report and desk-organizer-2000",
        "openai-compatible:http://127.0.0.1:18999/v1#desk-1",
        "openai-compatible qwen2.5-task-1",
        "https://example.org:8080/path?q=1",
        "Basic authentication is off",
        '{"a":"token","b":"x"}',
        '["secret santa",{"b":1}]',
        "an ordinary line: with a colon, and = signs",
        "'d/034_r2-user-password.pdf': it can only be opened with a password.",
        "file:///etc/passwd: only http and https are fetched",
        "invalid token: expected a string of three parts",
        "token: expired 3 days ago",
        "Give the secret: what the form asks for.",
        "run it with --token of the lease",
        "see sk-learn",
        "patterns/human-in-the-loop",
        "listens on http://127.0.0.1:8765",
        "token_url: https://issuer.example/oauth/token",
        'headers = { authorization = "Bearer ${OTLP_TOKEN}" }, token_env = "GITLAB_TOKEN", password=…, --token TOKEN',
        "postgresql://user:password@host/database",
        '{"token": "${ANN_TOKEN}", "list": [1, 2]}',
        "",
    ],
)
def test_ordinary_words_stay(text: str) -> None:
    assert mask(text) == text


# --- by shape


@pytest.mark.parametrize("token", TOKENS)
def test_tokens_are_known_by_their_shape(token: str) -> None:
    for before, after in product(
        ["", "x ", "x\n", "\t", '"', "'", "(", "=", "/", "é", "\\", ","], ["", " ", "\n", '"', ",", "\\"]
    ):
        text = f"{before}{token}{after}"
        assert not leaked(mask(text))
        assert not leaked(preview_of({"a": [text]}))
        assert not leaked(preview_of({"a": json.dumps({"b": json.dumps([text])})}, 10_000))


@pytest.mark.parametrize("token", TOKENS)
def test_a_token_that_was_cut_is_known_too(token: str) -> None:
    for end in range(len(token) + 1):
        for tail in ("", "…", '"', '"}', " "):
            shown = mask(f"text {token[:end]}{tail}")
            assert not leaked(shown) or tail == '"}'


def test_the_rest_of_the_text_stays() -> None:
    assert mask(f"a ghp_{SECRET}{SECRET} b sk-{SECRET}{SECRET}, c") == f"a {MASK} b {MASK}, c"
    assert mask(f"https://user:{SECRET}@host/path") == f"https://{MASK}@host/path"


KINDS = [*kinds("own_shapes.txt"), *kinds("shapes.txt")]


@given(st.data())
def test_each_kind_of_token_is_known_by_an_example_of_its_shape(data: st.DataObject) -> None:
    head, body, least = data.draw(st.sampled_from(KINDS))
    token = head + data.draw(st.from_regex(rf"[{body}]{{{least}}}", fullmatch=True))
    before = data.draw(st.sampled_from(["", "x ", "=", '"', "\\n", "%22", "\x1b[31m", "é", "\\u00e9", "--key-"]))
    after = data.draw(st.sampled_from(["", " ", '"', "\n", ","]))
    assert token not in mask(f"{before}{token}{after}")
    assert token not in preview_of({"text": [f"{before}{token}{after}"]}, 10_000)


@pytest.mark.parametrize("page", sorted(Path("docs").rglob("*.md")), ids=lambda page: page.stem)
def test_no_word_of_our_own_pages_is_taken_for_a_secret(page: Path) -> None:
    prose = re.sub(r"^ *```.*?^ *```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert [line for line in prose.splitlines() if mask(line) != line] == []


# --- one short line


def test_a_preview_is_the_value_while_it_is_short() -> None:
    value = {"path": "src/ü.py", "limit": 10, "deep": [1.5, None, {"a": []}]}
    assert preview_of(value) == preview(encoded(value)) == encoded(value).decode()


@pytest.mark.parametrize("size", [196, 197, 198, 199, 1_000, 1_022, 1_023, 5_000, 100_000])
def test_a_preview_is_cut_to_its_length(size: int) -> None:
    shown = preview_of("x" * size)
    assert len(shown) <= LENGTH == 200
    assert shown.endswith("…") is (size + 2 > LENGTH)
    assert preview_of("x" * size, 50) == '"' + "x" * 48 + "…"


def test_a_preview_is_cut_after_it_was_masked() -> None:
    shown = preview_of({"a": "x" * 150, "password": SECRET, "b": "y" * 150})
    assert f'"password":"{MASK}","b":"yyy' in shown


def test_what_would_move_the_cursor_or_turn_the_writing_is_spelt_out() -> None:
    assert line("a\r\nb\tc\x1b[2J\u202ed\u200be\x07") == "a  b c\\u001b[2J\\u202ed\\u200be\\u0007"
    assert preview_of("a\u202eb\x85") == '"a\\u202eb "'
    assert line("\ud800x") == "\\ud800x"


@pytest.mark.parametrize("value", [object(), {"a": object()}, {1: {2}}, "\ud800", {(1, 2): 3}, [b"x"], 2**80])
def test_a_preview_can_be_made_of_anything(value: Any) -> None:
    assert preview_of(value).isprintable()


def test_a_value_that_holds_itself_has_a_preview() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert preview_of(loop) == "[[...]]"


def test_a_value_of_many_levels_has_a_preview() -> None:
    assert not leaked(preview(b'{"a":' * 900 + b'"password=' + SECRET.encode() + b'"' + b"}" * 900, 10_000))
    assert not leaked(preview(b"[" * 5_000 + b'{"password":"' + SECRET.encode(), 10_000))


# --- whatever surrounds it


AWKWARD = st.text(st.sampled_from("\"'\\{}[]:,=\n\r\t é\u202e<&;/ab0-_. "), max_size=6) | st.sampled_from(
    ["\\u0022", "\\n", '\\"', '"}', '":"', "\u2028", "\\"]
)
FILLER = st.none() | st.booleans() | AWKWARD | st.just({"max_tokens": 5}) | st.lists(AWKWARD, max_size=2)
NAMED = st.builds(
    lambda before, name, after, value: {f"{before}{name}{after}": value},
    AWKWARD | st.just(""),
    st.sampled_from(NAMES),
    AWKWARD | st.just(""),
    st.one_of(
        st.builds(lambda a, b: f"{a}{SECRET}{b}", AWKWARD, AWKWARD),
        st.builds(lambda a: [a, SECRET], AWKWARD),
        st.builds(lambda a: {"a": a, "b": {"c": [SECRET]}}, AWKWARD),
    ),
)
SHAPED = st.builds(
    lambda before, gap, token, end, after: {"text": f"{before}{gap}{token}{end}{after}"},
    AWKWARD,
    st.sampled_from(["\n", " ", '"', "\t", "(", "=", "é", "\\"]),
    st.sampled_from(TOKENS),
    st.sampled_from(["\n", " ", '"', "", ","]),
    AWKWARD,
)
DOCUMENTS = st.recursive(
    NAMED | SHAPED,
    lambda inner: st.one_of(
        st.builds(lambda k, a, b, c: {f"{k}k": a, "in": b, "z": c}, AWKWARD, FILLER, inner, FILLER),
        st.builds(lambda a, b, c: [a, b, c], FILLER, inner, FILLER),
        st.builds(lambda b, ascii_: {"body": json.dumps(b, ensure_ascii=ascii_)}, inner, st.booleans()),
    ),
    max_leaves=3,
)


@given(document=DOCUMENTS, cut=st.floats(0, 1), padding=st.integers(0, 1_100))
@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@example(document={'credentials\\"]': [".", SECRET]}, cut=0.9, padding=0)
@example(document={"pwd": f'}}":"\r]\'\\u0022a{SECRET}\n'}, cut=1, padding=0)
def test_no_secret_is_shown_wherever_it_stands_and_wherever_the_text_ends(
    document: Any, cut: float, padding: int
) -> None:
    whole = encoded(document)
    padded = encoded({"pad": "p " * (padding // 2), "in": document})
    for value in (whole, whole[: int(len(whole) * cut)], padded, padded[: int(len(padded) * cut)]):
        assert not leaked(preview(value))
        assert not leaked(preview(value, 100_000))
        assert not leaked(mask(value.decode("utf-8", "ignore")))


@given(document=DOCUMENTS, before=st.text("abc :\n,.", max_size=8), after=st.text(max_size=8))
@settings(max_examples=60, deadline=None)
def test_no_secret_is_shown_in_a_line_around_a_document(document: Any, before: str, after: str) -> None:
    assert not leaked(mask(f"{before}{encoded(document).decode()}{after}"))
    assert not leaked(line(f"{before}{encoded(document).decode()}{after}", 10_000))


@given(st.text(st.characters()))
def test_masking_any_text_ends_and_masks_no_less_the_second_time(text: str) -> None:
    once = mask(text)
    assert isinstance(mask(once), str)
    assert line(text).isprintable()
    assert len(line(text)) <= LENGTH


@pytest.mark.parametrize(
    "text",
    [
        "token" * 5_000,
        '{"token' * 30_000,
        '[1,{"token":' * 9_000,
        '"token' * 4_000,
        "\\" * 20_000,
        "://a:" * 4_000,
        "-" * 20_000,
        'token["' * 3_000,
        "eyJ" * 7_000,
    ],
    ids=lambda text: text[:7],
)
@pytest.mark.timeout(20)  # seconds; exponential or cubic work would take longer than anybody waits
def test_a_hostile_text_is_masked_in_no_time_to_speak_of(text: str) -> None:
    assert isinstance(mask(text), str)
    assert len(preview_of(text)) <= LENGTH
    assert len(line(text)) <= LENGTH


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"item": "milk", "count": 2, "note": None, "more": ""}, "item: milk, count: 2"),
        ({"a:b": "x", "a\u202e": 1}, "a:b: x, a\\u202e: 1"),
        ({"password": SECRET}, f"password: {MASK}"),
        ({"note": f"password={SECRET}"}, f"note: password={MASK}"),
        ({"deep": [{"token": SECRET}]}, f'deep: [{{"token":"{MASK}"}}]'),
        ({}, ""),
        ([1, 2], "[1,2]"),
    ],
)
def test_arguments_are_written_as_words(value: object, words: str) -> None:
    assert words_of(value) == words


def test_words_are_cut_and_leak_nothing_of_what_is_left_out() -> None:
    words = words_of({f"name{number}": "x" * 50 for number in range(1_000)}, 80)
    assert (len(words), words[-1]) == (80, "…")
