from __future__ import annotations

from typing import Any

import pytest

from remit.mcp_config.secrets import SecretReplacer, looks_secret

TOKEN = "ghp_" + "a1B2" * 9


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("API_KEY", "abc"),
        ("GITHUB_TOKEN", "x"),
        ("Authorization", "Bearer abc"),
        ("X-Api-Key", "abc"),
        ("SLACK_KEY", "plain"),
        ("GH_PAT", "plain"),
        ("ANYTHING", TOKEN),
        ("ANYTHING", "123e4567-e89b-12d3-a456-426614174000"),
        ("DATABASE_URL", "postgresql://me:pw@h/d"),
        ("TOKEN", "${TOKEN:-abc}"),
        ("TOKEN", "pre${X}"),
    ],
)
def test_literal_secrets_are_seen(name: str, text: str) -> None:
    assert looks_secret(name, text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("API_KEY", "${API_KEY}"),
        ("Authorization", "Bearer ${TOKEN}"),
        ("API_KEY", ""),
        ("USE_TOKEN", "true"),
        ("MAX_TOKENS", "4096"),
        ("TOKEN_FILE", "/run/secrets/x"),
        ("AUTH_URL", "https://h/login"),
        ("MODEL", "claude-3-5-sonnet-20241022"),
        ("PATH", "/usr/bin:/bin"),
        ("LOG_LEVEL", "debug"),
    ],
)
def test_what_is_no_secret_is_not_taken_for_one(name: str, text: str) -> None:
    assert not looks_secret(name, text)


def cloaked(**table: Any) -> tuple[dict[str, Any], dict[str, str]]:
    made, replaced = SecretReplacer().table("srv", table)
    return made, {one.variable: one.place for one in replaced}


def test_secrets_in_env_and_headers_become_references_and_the_rest_stays() -> None:
    made, variables = cloaked(command=["x"], env={"API_KEY": "abc", "MODE": "fast", "T": "${T}"})
    assert made == {"command": ["x"], "env": {"API_KEY": "${API_KEY}", "MODE": "fast", "T": "${T}"}}
    assert variables == {"API_KEY": "env API_KEY"}
    made, variables = cloaked(url="https://h", headers={"Authorization": "Bearer abc", "X-A": "b"})
    assert made["headers"] == {"Authorization": "Bearer ${SRV_AUTHORIZATION}", "X-A": "b"}
    assert variables == {"SRV_AUTHORIZATION": "header Authorization"}


@pytest.mark.parametrize(
    ("args", "made"),
    [
        (["--api-key", "abc", "-y"], ["--api-key", "${SRV_API_KEY}", "-y"]),
        (["--api-key=abc"], ["--api-key=${SRV_API_KEY}"]),
        (["-e", "API_KEY=abc"], ["-e", "API_KEY=${SRV_API_KEY}"]),
        (["--header", "Authorization: Bearer abc"], ["--header", "Authorization: Bearer ${SRV_AUTHORIZATION}"]),
        ([TOKEN], ["${SRV_ARGUMENT}"]),
        (["postgresql://me:pw@h/d"], ["postgresql://me:${SRV_URL_PASSWORD}@h/d"]),
        (["--api-key", "${K}"], ["--api-key", "${K}"]),
        (
            ["-y", "@scope/server@1.2.3", "/home/ann", "--verbose"],
            ["-y", "@scope/server@1.2.3", "/home/ann", "--verbose"],
        ),
    ],
)
def test_secrets_in_arguments_become_references(args: list[str], made: list[str]) -> None:
    assert cloaked(command=["npx", *args])[0]["command"] == ["npx", *made]


@pytest.mark.parametrize(
    ("url", "made"),
    [
        ("https://h/mcp?a=1&api_key=abc", "https://h/mcp?a=1&api_key=${SRV_URL_API_KEY}"),
        ("https://me:pw@h/mcp", "https://me:${SRV_URL_PASSWORD}@h/mcp"),
        ("https://abc@h/mcp", "https://${SRV_URL_USER}@h/mcp"),
        ("https://h/s/abcdef0123456789/mcp", "https://h/s/${SRV_URL_PATH}/mcp"),
        ("https://h:8443/mcp?api_key=${K}#x", "https://h:8443/mcp?api_key=${K}#x"),
        ("https://${U}:${P}@h/", "https://${U}:${P}@h/"),
        ("${URL}", "${URL}"),
        ("${URL:-https://me:pw@h}", "${SRV_URL}"),
        ("https://[x", "https://[x"),
    ],
)
def test_secrets_in_urls_become_references(url: str, made: str) -> None:
    assert cloaked(url=url)[0]["url"] == made


def test_a_variable_never_stands_for_two_secrets() -> None:
    cloak = SecretReplacer()

    def env(server: str, value: str) -> str:
        return str(cloak.table(server, {"env": {"API_KEY": value}})[0]["env"]["API_KEY"])

    assert env("a", "one") == "${API_KEY}"
    assert env("b", "one") == "${API_KEY}"
    assert env("c", "two") == "${C_API_KEY}"
    assert env("c", "three") == "${API_KEY_3}"
