"""The ground of an agent in the sandbox: what it sees of a machine, and what of that it cannot change.

It sees its own installation, its project, its state and no other file of its user's. Where it would look for settings
and there are none, an empty folder or file is made first, so that it cannot be made inside. What stands in front of a
settings file is a mount of its own too: it cannot be renamed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from remit.errors import UsageError
from remit.process.enclosure import FolderMount, Program, SandboxTerms


class AgentGround(NamedTuple):
    """Facts of an agent on a machine. A name with a suffix is that of a file."""

    hosts: tuple[str, ...] = ()
    """Where its maker serves its model."""
    settings: tuple[str, ...] = ()
    """Names in its folder of settings that decide about hooks."""
    project: tuple[str, ...] = ()
    """The folders in a project that say what it starts."""
    state: tuple[str, ...] = ()
    """Places in a home beside that, which it writes."""


GROUNDS: Final[Mapping[str, AgentGround]] = {
    "claude": AgentGround(
        ("api.anthropic.com",), ("settings.json", "remote-settings.json"), (".claude",), (".claude.json",)
    ),
    "codex": AgentGround(("api.openai.com", "chatgpt.com"), ("config.toml", "hooks.json"), (".codex",)),
    "gemini": AgentGround(
        ("generativelanguage.googleapis.com",), ("settings.json", "trustedFolders.json", "extensions"), (".gemini",)
    ),
    "opencode": AgentGround(
        ("opencode.ai", "models.dev"),
        ("plugin", "plugins", "opencode.json"),
        (".opencode/plugin", ".opencode/plugins"),
        (".local/share/opencode", ".local/state/opencode", ".cache/opencode"),
    ),
    "qwen": AgentGround(("dashscope.aliyuncs.com",), ("settings.json", "extensions"), (".qwen",)),
    "copilot": AgentGround(
        ("api.githubcopilot.com", "api.github.com"),
        ("hooks", "settings.json"),
        (".github/copilot", ".github/hooks"),
    ),
}
"""The agents that are known; any other program has its project and a home that is empty."""
_MACHINE: Final = Path("/etc/claude-code")
"""Claude's managed settings."""
_GIT: Final = (".git/hooks", ".git/config")
"""Places by which git starts programs outside, once an agent has written there."""
_MOVED: Final = {
    ".local/share": "XDG_DATA_HOME",
    ".local/state": "XDG_STATE_HOME",
    ".cache": "XDG_CACHE_HOME",
}
_FOLDERS: Final = {"claude": "CLAUDE_CONFIG_DIR", "codex": "CODEX_HOME", "opencode": "XDG_CONFIG_HOME"}
_PROXIES: Final = frozenset({"http_proxy", "https_proxy", "all_proxy", "no_proxy"})
"""Variables of a proxy: within, the sandbox's own is the only one."""


class AgentNeeds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Things that its user lets an agent have beside."""

    hosts: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


def folder_of(agent: str, env: Mapping[str, str]) -> Path:
    """Return the folder of an agent's own settings. Raises UsageError."""
    if not env.get("HOME"):
        raise UsageError("HOME is not set, so the agent's files cannot be found", remedy="Set HOME.")
    moved = env.get(_FOLDERS.get(agent, ""))
    if agent == "opencode":
        return Path(moved or f"{env['HOME']}/.config") / "opencode"
    return Path(moved or f"{env['HOME']}/.{agent}")


def enclosed(
    command: Sequence[str],
    env: Mapping[str, str],
    folder: Path,
    needs: AgentNeeds,
    refused: Callable[[str, str], None],
    *,
    makers: tuple[str, ...] = (),
    at: str = "",
) -> Program:
    """Return a program as it is in the sandbox, and make what keeps its settings. Raises OSError and UsageError.

    It reaches the hosts that `*_BASE_URL` of its variables name, what it needs, and those of `makers`. Its folder is
    mounted `at` another path, if one is named: nothing above the folder is seen then.
    """
    agent, moved = Path(command[0]).name, at not in {"", str(folder)}
    ground, project = GROUNDS.get(agent, AgentGround()), folder if moved else _project(folder)
    inside = Path(at) if moved else project
    fixed = [_made(project / name) for name in (*ground.project, *(_GIT if (project / ".git").is_dir() else ()))]
    shown = dict.fromkeys(fixed, False) | dict.fromkeys((project, *(path.parent for path in fixed)), True)
    reads, writes, env = list[Path](), list[Path](), dict(env)
    if agent in GROUNDS:
        own = folder_of(agent, env)
        reads = [_made(own / name) for name in ground.settings]
        writes = [*(path.parent for path in reads), *(_made(_state(name, env)) for name in ground.state)]
    else:
        env.pop("HOME", None)
    reads += [_MACHINE] if _MACHINE.exists() else []
    if not moved:
        reads += [path for path, writable in shown.items() if not writable]
        writes += [path for path, writable in shown.items() if writable]
    urls = [urlsplit(value) for name, value in env.items() if name.endswith("_BASE_URL")]
    named = tuple(dict.fromkeys(url.netloc.rpartition("@")[2] for url in urls if url.hostname))
    return Program(
        command=(str(folder / command[0]) if moved and os.sep in command[0] else command[0], *command[1:]),
        cwd=inside if moved else folder,
        env={name: value for name, value in env.items() if name.lower() not in _PROXIES},
        terms=SandboxTerms(
            roots=(*map(str, reads), *needs.reads),
            writable=(*dict.fromkeys(map(str, writes)), *needs.writes),
            network=(*makers, *named, *needs.hosts),
        ),
        mounts=tuple(
            FolderMount(path, str(inside / path.relative_to(project)), writable) for path, writable in shown.items()
        )
        if moved
        else (),
        private=(*named, *needs.hosts),
        refused=refused,
    )


def _project(folder: Path) -> Path:
    return next((place for place in (folder, *folder.parents) if (place / ".git").exists()), folder)


def _state(name: str, env: Mapping[str, str]) -> Path:
    base, _, rest = name.rpartition("/")
    moved = env.get(_MOVED.get(base, ""))
    return Path(moved) / rest if moved else Path(env["HOME"]) / name


def _made(path: Path) -> Path:
    """Return a path, empty where there was none."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix:
            path.write_text("" if path.suffix == ".toml" else "{}\n")
        else:
            path.mkdir()
    return path
