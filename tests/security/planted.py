"""Fifty secrets of more than twenty forms, each with the part of it that nobody may see."""

from __future__ import annotations

import base64
import json
from typing import Final, NamedTuple


class Secret(NamedTuple):
    """A secret as it stands in a text; a zero byte stands for an at sign."""

    text: str
    core: str
    """What gives it away wherever it is seen."""


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _url(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _in(text: str, core: str) -> Secret:
    return Secret(text.replace("@", core), core)


_JWT: Final = f"{_url(json.dumps({'alg': 'HS256'}))}.{_url(json.dumps({'sub': 'zaphod'}))}"
_TAIL: Final = "X9mB2vN4cT7wR5yL8pJ3hF6dS0aG1eQz"

SECRETS: Final = (
    # tokens of providers
    _in("ghp_@", f"Zq01{_TAIL}"), _in("gho_@", f"Zq02{_TAIL}"), _in("github_pat_@", f"Zq03{_TAIL}"),
    _in("sk-proj-@", f"Zq04{_TAIL}"), _in("sk-ant-api03-@", f"Zq05{_TAIL}"),
    _in("AKIA@", "ZQ06J4K6L8M0N2P4"), _in("AIza@", f"SyZq07{_TAIL}"), _in("glpat-@", "Zq08A2b3C4d5E6f7G8h9"),
    _in("xoxb-123456789012-@", "Zq09bCdEfGhIjKlMnOp"), _in("sk_live_@", "Zq10H8abcdefghijklmnop"),
    _in("npm_@", f"Zq11{_TAIL}"), _in("pypi-@", "AgEIcHlwaS5vcmcCJDZq12"), _in("hf_@", f"Zq13{_TAIL}"),
    _in("hvs.@", "CAESIZq14abcdefghijklmnop"), _in("shpat_@", "00a15bcdef0123456789abcdef012345"),
    _in("123456789:AA@", "Zq16dqTcvCH1vGWJxfSeofSAs0K5PALDs"), _in("SK@", "17b2c3d4e5f60718293a4b5c6d7e8f90"),
    _in("dop_v1_@", "18" + "0123456789abcdef" * 3), _in("SG.Zq19abcdefghijklmnop.@", f"Zq19{_TAIL}"),
    _in("AGE-SECRET-KEY-1@", "ZQ20J4K6L8M0N2P4RS6T8V0W2X4Y6"),
    # webhooks, whose address is the secret
    _in("https://discord.com/api/webhooks/123456789012345678/@", f"Zq21{_TAIL}"),
    _in("https://hooks.slack.com/services/T00000000/B00000000/@", "Zq22XXXXXXXXXXXXXXXXXXXX"),
    # private keys
    _in("-----BEGIN RSA PRIVATE KEY-----\n@\n-----END RSA PRIVATE KEY-----", "MIIEZq23AAKCAQEA0Z3VS5JJcds3xfn"),
    _in("-----BEGIN OPENSSH PRIVATE KEY-----\n@\n-----END OPENSSH PRIVATE KEY-----", "b3BlbnNzaC1rZXktdjEAZq24"),
    # connection strings, passwords in URLs, queries
    _in("postgresql://app:@\0host:5432/shop", "Zq25hunter34"), _in("redis://:@\0cache:6379/0", "Zq26hunter"),
    _in("mongodb+srv://u:@\0cluster0.example.net/db", "Zq27hunter"),
    _in("https://user:@\0example.com/path", "Zq28hunter78"),
    _in("Server=db;User Id=sa;Password=@;", "Zq29hunter"), _in("AccountName=a;AccountKey=@==", f"Zq30{_TAIL}"),
    _in("https://example.com/cb?access_token=@&x=1", "Zq31abcdef1234567890"),
    # headers and cookies
    _in("Cookie: session=@; theme=dark", "Zq32abcdefabcdefabcdef"),
    _in("Set-Cookie: sid=@; HttpOnly", "Zq33abcdefabcdef"),
    _in("Authorization: Bearer @", "Zq34abcdefghij0123456789"), _in("Authorization: Basic @", _b64("user:Zq35hunter")),
    _in("X-Api-Key: @", "Zq36abcdef0123"), _in("Proxy-Authorization: Basic @", _b64("u:Zq37hunter")),
    # JWTs
    _in(f"{_JWT}.@", "Zq38flKxwRJSMeKKF2QT4fwpMeJf36POk6yJVadQssw5c"),
    # names in environments, options, code and files
    _in("DATABASE_PASSWORD=@", "Zq39hunter"), _in("export API_TOKEN='@'", "Zq40hunter-token"),
    _in("AWS_SECRET_ACCESS_KEY=@", "wJalrZq41tnFEMIK7MDENGbPxRfiCY"),
    _in("curl --password @ https://example.com", "Zq42hunter"),
    _in('password = "@"', "Zq43hunter"), _in("db:\n  password: @\n", "Zq44hunter"),
    _in("machine example.com login ann password @", "Zq45hunter"),
    # nested JSON
    _in('{"a":{"b":[{"client_secret":"@"}]}}', "Zq46hunter"),
    _in(json.dumps({"body": json.dumps({"password": "@"})}), "Zq47hunter"),
    # a filename, and base64
    _in("/tmp/ghp_@.txt", f"Zq48{_TAIL}"), _in("@", _b64(f"ghp_Zq49{_TAIL}")),
    _in("@", _b64("-----BEGIN PRIVATE KEY-----\nMIIEvZq50hunter\n-----END PRIVATE KEY-----")),
)  # fmt: skip
SECRETS_BY_NUMBER: Final = {
    f"text{number}": Secret(one.text.replace("\0", "@"), one.core) for number, one in enumerate(SECRETS, 1)
}
