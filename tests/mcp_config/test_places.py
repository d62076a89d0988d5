from __future__ import annotations

from pathlib import Path

import pytest

from remit.mcp_config.places import client_of, usual_places

PROJECT = Path("/p")


def of(client: str, *, mac: bool, **env: str) -> list[str]:
    places = usual_places(PROJECT, {"HOME": "/h", **env}, mac=mac)
    return [str(place.file) for place in places if place.client == client]


def test_the_places_on_linux() -> None:
    assert of("claude-desktop", mac=False) == ["/h/.config/Claude/claude_desktop_config.json"]
    assert of("claude-code", mac=False) == ["/p/.mcp.json", "/h/.claude.json"]
    assert of("cursor", mac=False) == ["/p/.cursor/mcp.json", "/h/.cursor/mcp.json"]
    assert of("vscode", mac=False)[:2] == ["/p/.vscode/mcp.json", "/h/.config/Code/User/mcp.json"]
    assert of("claude-desktop", mac=False, XDG_CONFIG_HOME="/x") == ["/x/Claude/claude_desktop_config.json"]
    assert of("claude-code", mac=False, CLAUDE_CONFIG_DIR="/c") == ["/p/.mcp.json", "/c/.claude.json"]


def test_the_places_on_macos() -> None:
    support = "/h/Library/Application Support"
    assert of("claude-desktop", mac=True) == [f"{support}/Claude/claude_desktop_config.json"]
    assert of("vscode", mac=True)[:2] == ["/p/.vscode/mcp.json", f"{support}/Code/User/mcp.json"]


def test_the_profiles_of_vs_code_are_among_them(tmp_path: Path) -> None:
    profile = tmp_path / ".config/Code/User/profiles/a1/mcp.json"
    profile.parent.mkdir(parents=True)
    profile.touch()
    assert str(profile) in of("vscode", mac=False, HOME=str(tmp_path))


def test_without_a_home_only_the_project_is_looked_at() -> None:
    assert all(place.file.is_relative_to(PROJECT) for place in usual_places(PROJECT, {}, mac=False))


@pytest.mark.parametrize("mac", [True, False])
def test_every_usual_place_says_whose_it_is(mac: bool) -> None:
    for place in usual_places(PROJECT, {"HOME": "/h"}, mac=mac):
        assert client_of(place.file) == place.client
    assert client_of(Path("/x/other.json")) is None


def test_a_home_folder_that_is_the_project_is_looked_at_once() -> None:
    assert of("cursor", mac=False, HOME="/p") == ["/p/.cursor/mcp.json"]
