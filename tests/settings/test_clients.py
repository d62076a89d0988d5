from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from remit.errors import SettingsError
from remit.http.guard import digest_of
from remit.settings import load
from remit.settings.clients import Clients, bearer, clients, grant


def read(folder: Path, text: str) -> Clients:
    (folder / "remit.toml").write_text(text, encoding="utf-8")
    return clients(load(cwd=folder, env={}))


def tables(*bodies: str) -> str:
    return "".join(f"[[clients]]\n{body}\n" for body in bodies)


def test_clients_are_in_the_order_of_the_file_and_may_share_a_principal(tmp_path: Path) -> None:
    found = read(tmp_path, tables('principal = "a"\ntoken = "${T}"', 'principal = "a"\ntoken = "u"'))
    assert [(one.principal, one.token) for one in found.clients] == [("a", "${T}"), ("a", "u")]
    assert found.warnings == ()
    assert read(tmp_path, "") == Clients(())


def test_a_client_reads_and_calls_unless_its_scopes_say_otherwise(tmp_path: Path) -> None:
    bodies = ('principal = "a"\ntoken = "t"', 'principal = "b"\ntoken = "u"\nscopes = ["decide", "work"]')
    one, other = read(tmp_path, tables(*bodies)).clients
    assert bearer(one, {}).access.scopes == {"read", "call"}
    assert bearer(other, {}).access.scopes == {"decide", "work"}


def test_a_token_expires_at_a_moment_that_toml_or_json_names(tmp_path: Path) -> None:
    (one,) = read(tmp_path, tables('principal = "a"\ntoken = "t"\nexpires = 1970-01-01T01:00:01+01:00')).clients
    assert bearer(one, {}).expires == 1_000_000
    entry = {"principal": "a", "token": "t", "expires": "1970-01-01T00:00:02Z"}
    (two,) = clients(load(cwd=tmp_path, env={"REMIT_CLIENTS": json.dumps([entry])})).clients
    assert bearer(two, {}).expires == 2_000_000


def test_a_digest_stands_for_its_token(tmp_path: Path) -> None:
    digest = hashlib.sha256(b"hunter2").hexdigest()
    (one,) = read(tmp_path, tables(f'principal = "a"\nsha256 = "{digest}"\ntools = ["fs.*"]')).clients
    token = bearer(one, {})
    assert token.digest == digest_of("hunter2")
    assert token.access.tools == ("fs.*",)


def test_a_token_is_expanded_and_never_empty(tmp_path: Path) -> None:
    (one,) = read(tmp_path, tables('principal = "ann"\ntoken = "${T}"')).clients
    assert bearer(one, {"T": "x"}).digest == digest_of("x")
    for env in ({"T": ""}, {"T": " "}):
        with pytest.raises(SettingsError, match="client ann: its token is empty"):
            bearer(one, env)
    with pytest.raises(SettingsError, match="client ann needs the environment variable T"):
        bearer(one, {})
    with pytest.raises(SettingsError, match="line break"):
        bearer(one, {"T": "a\nb"})


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('principal = "a"', "neither token nor sha256 nor issuer is given"),
        ('principal = "a"\ntoken = "hunter2"\nsha256 = "' + "0" * 64 + '"', "token and sha256 are both given"),
        ('principal = "a"\ntoken = "hunter2"\nissuer = "https://sso.example"', "token and issuer are both given"),
        ('principal = "a"\nissuer = "https://sso.example"', "an issuer is given without an audience"),
        ('principal = "a"\nissuer = "http://sso.example"\naudience = "x"', "issuer must be the https URL"),
        ('principal = "a"\ntoken = "hunter2"\naudience = "x"', "audience belongs to an issuer"),
        ('principal = "a"\ntoken = "hunter2"\nclaims = { a = "b" }', "claims belongs to an issuer"),
        ('principal = "a"\nissuer = "https://sso.example"\naudience = []', "audience must be a non-empty text"),
        (
            'principal = "a"\nissuer = "https://sso.example"\naudience = "x"\nclaims = { n = 5 }',
            "claims must be a table of texts",
        ),
        ('token = "hunter2"', "principal must be a non-empty text"),
        ('principal = ""\ntoken = "hunter2"', "principal must be a non-empty text"),
        ('principal = "a"\ntoken = ["hunter2"]', "token must be a non-empty text"),
        ('principal = "a"\nsha256 = "hunter2"', "sha256 must be 64 hexadecimal digits"),
        ('principal = "a"\ntoken = "hunter2"\nscope = "x"', "there is no key scope"),
        ('principal = "a"\ntoken = "hunter2"\nscopes = ["reed"]', "scopes must be a list of any of"),
        ('principal = "a"\ntoken = "hunter2"\nscopes = []', "scopes must be a list of any of"),
        ('principal = "a"\ntoken = "hunter2"\ntools = "fs.*"', "tools must be a list"),
        ('principal = "a"\ntoken = "hunter2"\ntools = ["fs.[rw]*"]', "tools must be a list of names or patterns"),
        ('principal = "a"\ntoken = "hunter2"\nexpires = 2027-01-01', "expires must be a date and time with its offset"),
        (
            'principal = "a"\ntoken = "hunter2"\nexpires = 2027-01-01T00:00:00',
            "expires must be a date and time with its offset",
        ),
    ],
)
def test_a_bad_table_is_an_error_that_quotes_no_token(tmp_path: Path, table: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read(tmp_path, tables(table))
    assert caught.value.message.startswith(f"{tmp_path / 'remit.toml'}: clients number 1: {said}")
    assert "hunter2" not in str(caught.value) + caught.value.remedy


SSO = 'issuer = "https://sso.example"\naudience = ["a", "b"]\nclaims = { groups = ["ops"], email_verified = true }'


def test_an_issuer_s_tokens_are_in_the_place_of_a_token(tmp_path: Path) -> None:
    (one, two) = read(tmp_path, tables(f'principal = "okta:{{sub}}"\n{SSO}', f'principal = "guest"\n{SSO}')).clients
    found = grant(one)
    assert (found.issuer, found.audience) == ("https://sso.example", ("a", "b"))
    assert found.claims == {"groups": ("ops",), "email_verified": ("true",)}
    assert found.access.principal == "okta:{sub}"
    assert grant(two).access.principal == "guest"


def test_two_issuers_never_speak_for_the_same_principal(tmp_path: Path) -> None:
    other = SSO.replace("sso", "other")
    with pytest.raises(SettingsError, match=r"\{sub\} and \{email\} of two issuers could be the same principal"):
        read(tmp_path, tables(f'principal = "{{sub}}"\n{SSO}', f'principal = "{{email}}"\n{other}'))


def test_two_clients_with_one_token_cannot_be_told_apart(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="number 2: b has the token of a") as caught:
        read(tmp_path, tables('principal = "a"\ntoken = "hunter2"', 'principal = "b"\ntoken = "hunter2"'))
    assert "hunter2" not in str(caught.value)


def test_the_old_name_is_read_with_a_note_and_allows_what_it_did(tmp_path: Path) -> None:
    found = read(tmp_path, '[[mcp.clients]]\nprincipal = "a"\ntoken = "t"\n')
    assert found.clients[0].scopes == ("read", "call", "decide")
    (note,) = found.warnings
    assert "[[mcp.clients]] is deprecated; write [[clients]]" in note
    with pytest.raises(SettingsError, match=r"mcp\.clients number 1: there is no key scopes"):
        read(tmp_path, '[[mcp.clients]]\nprincipal = "a"\ntoken = "t"\nscopes = ["read"]\n')
    with pytest.raises(SettingsError, match=r"mcp\.clients number 1: b has the token of a"):
        read(tmp_path, tables('principal = "a"\ntoken = "t"') + '[[mcp.clients]]\nprincipal = "b"\ntoken = "t"\n')
