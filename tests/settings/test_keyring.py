"""Secrets in a keyring: a real one in a file, none, and no library for it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest
from keyring import core
from keyrings.alt.file import PlaintextKeyring

from remit.errors import SettingsError
from remit.settings.expansion import expand, literal, variables
from remit.settings.logins import forget_login, keep_login, login_token
from tests.cli.conftest import Project, project
from tests.mcp_server.test_fidelity import SERVER

__all__ = ["project"]
SECRET = "s3cret-of-the-keyring"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PlaintextKeyring]:
    """A keyring in a file of the test's own, as the one of this process."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    before, own = keyring.get_keyring(), PlaintextKeyring()
    keyring.set_keyring(own)
    yield own
    keyring.set_keyring(before)


def test_a_secret_stands_where_its_reference_stood(here: PlaintextKeyring) -> None:
    here.set_password("remit", "acme/token.1", SECRET)
    assert expand("Bearer ${keyring:acme/token.1}!", {}, "x") == f"Bearer {SECRET}!"
    assert (variables("${keyring:a}"), literal("b ${keyring:a}")) == ([], "b ")


def test_only_what_was_stored_for_remit_is_read(here: PlaintextKeyring) -> None:
    here.set_password("another", "token", SECRET)
    with pytest.raises(SettingsError) as told:
        expand("${keyring:token}", {}, "MCP server a")
    assert told.value.message == "MCP server a needs token of the keyring, which is not there"
    assert told.value.remedy == "Store it: keyring set remit token"


def test_a_keyring_that_cannot_be_read_is_an_error_without_its_words(here: PlaintextKeyring) -> None:
    here.set_password("remit", "token", SECRET)
    Path(here.file_path).write_text(SECRET, encoding="utf-8")
    with pytest.raises(SettingsError, match="which does not give it: MissingSectionHeaderError") as told:
        expand("${keyring:token}", {}, "x")
    assert SECRET not in str(told.value)


def test_a_machine_without_a_keyring_says_so(here: PlaintextKeyring) -> None:
    keyring.set_keyring(core.load_keyring("keyring.backends.fail.Keyring"))
    with pytest.raises(SettingsError, match="there is no keyring here") as told:
        expand("${keyring:token}", {}, "x")
    assert told.value.remedy is not None
    assert "PYTHON_KEYRING_BACKEND" in told.value.remedy


def test_without_the_library_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(SettingsError) as told:
        expand("${keyring:token}", {}, "x")
    assert told.value.remedy == "Install it: pip install 'remit[keyring]'"


@pytest.mark.slow
def test_a_server_gets_the_secret_that_a_person_stored_and_nobody_else_sees_it(project: Project) -> None:
    project.env |= {
        "PYTHON_KEYRING_BACKEND": "keyrings.alt.file.PlaintextKeyring",
        "XDG_DATA_HOME": str(project.folder),
    }
    store = [sys.executable, "-m", "keyring", "set", "remit", "tea"]
    env = {name: value for name, value in project.env.items() if name != "PYTHONWARNINGS"}
    subprocess.run(store, input=SECRET, env=env, text=True, check=True, capture_output=True)
    shows = "import os; os.execv(os.sys.executable, [os.sys.executable, '-I', '-S', os.environ['SERVER']])"
    words = [sys.executable, "-c", f"import os, sys; print(os.environ['TEA'], file=sys.stderr); {shows}"]
    project.configure(
        f"[[mcp.servers]]\nname = 'full'\ncommand = {json.dumps(words)}\ntools = {{ hear = 'L0' }}\n"
        f"env = {{ SERVER = '{SERVER}', TEA = '${{keyring:tea}}' }}\n",
        modules=False,
    )
    done = project.apart("mcp", "call", "full.hear", "--json")
    assert (done.status, json.loads(done.out)["status"]) == (0, "ok"), done.err
    assert SECRET not in done.out + done.err
    missing = project.apart("mcp", "call", "full.hear", env={"XDG_DATA_HOME": str(project.folder / "none")})
    assert "needs tea of the keyring, which is not there" in missing.err


class LockedRing(PlaintextKeyring):  # type: ignore[misc] # the library has no types
    """A keyring of the priority that a test says, which may be locked."""

    priority = 5.0
    locked = False

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.locked:
            raise RuntimeError("locked")
        super().set_password(service, username, password)


@pytest.mark.parametrize(("priority", "locked", "in_file"), [(5, False, False), (0.5, False, True), (5, True, True)])
def test_the_token_of_a_login_is_in_the_keyring_if_there_is_a_good_one(
    here: PlaintextKeyring, tmp_path: Path, priority: float, locked: bool, in_file: bool
) -> None:
    ring = LockedRing()
    ring.priority, ring.locked = priority, locked
    keyring.set_keyring(ring)
    env, url = {"XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path)}, "https://remit.example"
    keep_login(env, url, {"token": SECRET, "principal": "ann"})
    assert login_token(env, f"{url}/") == SECRET
    files = [file for file in tmp_path.rglob("remit-*.json") if SECRET in file.read_text(encoding="utf-8")]
    assert bool(files) is in_file
    forget_login(env, url)
    assert login_token(env, url) == ""
    assert ring.get_password("remit login", url) is None


def test_a_backend_that_cannot_be_used_leaves_the_token_in_the_file(
    here: PlaintextKeyring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> PlaintextKeyring:
        raise RuntimeError("no bus here")

    keyring.set_keyring(LockedRing())
    env, url = {"XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path)}, "https://remit.example"
    keep_login(env, url, {"token": SECRET, "principal": "ann"})
    monkeypatch.setattr(keyring, "get_keyring", broken)
    assert login_token(env, url) == ""
    keep_login(env, url, {"token": SECRET, "principal": "ann"})
    assert login_token(env, url) == SECRET
    forget_login(env, url)
    assert login_token(env, url) == ""
