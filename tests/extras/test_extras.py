"""Each extra brings what its page needs, and no more is needed.

In every run its modules are imported where packages of the other extras are hidden. `make extras` installs each into an
environment of its own, and runs the page's programs there.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement

from remit_testing.models import ChatSpeech, ModelServer, Scene, SceneCall, Streamed
from remit_testing.models.server import Answers
from tests.extras.table import ADAPTERS, EXTRAS, PROGRAMS, ROOT, page, program
from tests.http.issuer import Issuer
from tests.journal.postgres.server import PostgresServer
from tests.parts.adapters.completions import scripted
from tests.parts.documents.made import pdf

INSTALLED: Final = bool(os.environ.get("REMIT_TEST_EXTRAS"))
DECLARED: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["dynamic"]
HIDE: Final = """
import importlib, sys
from importlib.machinery import PathFinder

hidden, names = set(sys.argv[1].split(",")), sys.argv[2:]


class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in hidden else super().find_spec(name, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = Finder
for name in names:
    importlib.import_module(name)
"""
SCENES: Final = (
    Scene(calls=(SceneCall("stock__count", '{"item": "apples"}', "call_1"),), stop="tools"),
    Scene(text=("There are three.",)),
)


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def brought(extras: set[str]) -> set[str]:
    """Distributions that Remit brings with these extras, and what those bring."""
    known: set[tuple[str, str]] = set()
    waiting = [("remit", extra) for extra in ("", *extras)]
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in known:
            continue
        known.add((name, extra))
        try:
            listed = [Requirement(text) for text in requires(name) or []]
        except PackageNotFoundError:  # of another platform
            continue
        for each in listed:
            if each.marker is None or each.marker.evaluate({"extra": extra}):
                waiting += [(normal(each.name), more) for more in ("", *each.extras)]
    return {name for name, _ in known}


def test_the_table_has_every_extra() -> None:
    assert set(DECLARED["optional-dependencies"]) - {"dev"} == set(EXTRAS)


@pytest.mark.parametrize("extra", EXTRAS)
def test_its_page_says_how_to_install_it(extra: str) -> None:
    text = page(EXTRAS[extra].page)
    lists = re.findall(r"pip install 'remit\[([\w,-]*)\]'", text) + re.findall(r"with the extra `([\w-]+)`", text)
    assert any({extra} <= set(each.split(",")) <= {extra, *EXTRAS[extra].beside} for each in lists)


@pytest.mark.slow
@pytest.mark.parametrize("extra", [name for name, row in EXTRAS.items() if row.page != ADAPTERS])
def test_its_modules_need_no_other_extra(extra: str) -> None:
    kept = brought({extra, *EXTRAS[extra].beside})
    hidden = [top for top, names in packages_distributions().items() if not {normal(name) for name in names} & kept]
    command = [sys.executable, "-c", HIDE, ",".join(hidden), *EXTRAS[extra].modules]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def answers(extra: str) -> Answers:
    """What the model says that a program asks."""
    if extra in {"pydantic-ai", "langgraph", "openai-agents"}:
        return scripted(SCENES)
    events = ChatSpeech().events(Scene(text=("Fine, thank you.",)))
    return lambda _: Streamed(events=events)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("src", "requirements"):  # what pip builds in a tree stays there
        shutil.copytree(ROOT / name, folder / name)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--wheel-dir", str(folder), str(folder)], check=True)
    (file,) = folder.glob("*.whl")
    return file


def environment(extra: str, wheel: Path, folder: Path) -> Path:
    """The Python of a fresh environment with the extra, and with those alone that its page names beside it."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin/python"
    extras = f"[{','.join((extra, *EXTRAS[extra].beside))}]" if extra else ""
    subprocess.run([python, "-m", "pip", "install", "--quiet", f"{wheel}{extras}"], check=True)
    return python


@pytest.mark.slow
@pytest.mark.timeout(1_200)  # pip downloads
@pytest.mark.skipif(not INSTALLED, reason="`make extras` makes an environment for each")
@pytest.mark.parametrize("extra", ["", *EXTRAS])
async def test_its_programs_run_where_it_is_installed_alone(
    extra: str, wheel: Path, tmp_path: Path, postgres: PostgresServer, schema: str
) -> None:
    python = await asyncio.to_thread(environment, extra, wheel, tmp_path / "env")
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "paper.pdf").write_bytes(pdf(["The tide comes twice a day."]))
    file = program(extra, folder) if extra else PROGRAMS / "core.py"
    async with Issuer() as issuer, ModelServer(answers(extra)).listening() as model:
        variables = {
            "HOME": str(tmp_path),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "NOTES": str(ROOT / "examples/mcp/notes.py"),
            "PDF": str(tmp_path / "paper.pdf"),
            "POSTGRES_URL": f"{postgres.url}&schema={schema}",
            "ISSUER_URL": issuer.url,
            "TOKEN": issuer.token(iat=None, exp=4_000_000_000),
            "MODEL_URL": model.url,
            "OPENAI_BASE_URL": f"{model.url}/v1",
            "OPENAI_API_KEY": "none",
            "OPENAI_AGENTS_DISABLE_TRACING": "1",
            "LANGSMITH_TRACING": "false",
        }
        process = await asyncio.create_subprocess_exec(
            python, file, cwd=folder, env=variables, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()
