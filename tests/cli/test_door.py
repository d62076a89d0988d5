"""Serving beyond this machine: refused without tokens or TLS, and over HTTPS as here."""

from __future__ import annotations

import json
import signal

import pytest

from tests.cli.conftest import Project
from tests.http.certificates import certificate
from tests.patience import PATIENCE_S

TOKENS = '[[clients]]\nprincipal = "ann"\ntoken = "${ANN_TOKEN}"\nscopes = ["admin"]\n'
COMMANDS = [("serve",), ("mcp", "serve", "--http"), ("mcp", "wrap", "--http")]
BEYOND = ("--host", "0.0.0.0", "--port", "0")  # noqa: S104 - what is refused


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_network_is_refused_without_tokens_and_without_tls(project: Project, words: tuple[str, ...]) -> None:
    project.env["ANN_TOKEN"] = "swordfish"
    project.env["REMIT_CONFIG"] = str(project.folder / "remit.toml")
    command = ("--", "nothing-is-started") if "wrap" in words else ()
    for more, table, why in (
        ((), "", "no client has a token"),
        (("--without-tls",), "", "no client has a token"),
        ((), TOKENS, "unencrypted"),
        (("--tls-cert", "none.pem"), TOKENS, "none.pem cannot be read"),
        ((), f'{TOKENS}[serve]\ntls_cert = "none.pem"\n', "none.pem cannot be read"),
    ):
        project.configure(table)
        done = project.here(*words, *BEYOND, *more, *command)
        assert (done.status, done.out) == (2, "")
        assert "error: SETTINGS_INVALID: " in done.err
        assert why in done.err
        assert "swordfish" not in done.err


@pytest.mark.parametrize("flag", ["command line", "remit.toml"])
def test_without_tls_is_served_where_the_operator_says_so(project: Project, flag: str) -> None:
    project.configure(TOKENS + ("[serve]\nwithout_tls = true\n" if flag == "remit.toml" else ""))
    more = ("--without-tls",) if flag == "command line" else ()
    with project.start("serve", *BEYOND, *more, "--no-work", env={"ANN_TOKEN": "swordfish"}) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://0.0.0.0:")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0


def test_a_command_reaches_a_server_over_https_whose_authority_it_trusts(project: Project) -> None:
    found = certificate(project.folder)
    project.configure(f'{TOKENS}[serve]\ntls_cert = "{found.cert.name}"\ntls_key = "{found.key.name}"\n')
    ours = {"ANN_TOKEN": "swordfish", "REMIT_TOKEN": "swordfish"}
    with project.start("serve", *BEYOND, "--known-as", "localhost", env=ours) as process:
        assert process.stdout is not None
        announced = process.stdout.readline().strip()
        assert announced.startswith("https://0.0.0.0:")
        url = announced.replace("0.0.0.0", "localhost")  # noqa: S104 - what was announced
        words = ("--server", url, "run", "greet", "--name", "Ann", "--json")
        refused = project.apart(*words, env=ours)
        done = project.apart(*words, env={**ours, "SSL_CERT_FILE": str(found.authority)})
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert refused.status == 1
    assert json.loads(refused.err)["code"] == "SERVER_UNREACHABLE"
    assert "its certificate is not accepted" in json.loads(refused.err)["message"]
    assert done.status == 0, done.err
    assert done.json["state"] == "completed"
