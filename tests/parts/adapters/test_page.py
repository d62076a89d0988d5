"""docs/adapters.md: its programs run in the real frameworks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from remit_testing.models import ModelServer, Scene, SceneCall
from tests.parts.adapters.completions import scripted
from tests.parts.adapters.environment import ROOT, run

pytestmark = pytest.mark.slow

PAGE: Final = (ROOT / "docs/adapters.md").read_text(encoding="utf-8")
PYTHON: Final = dict(re.findall(r"^## ([^\n]+)\n```python\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL))
SCENES: Final = (
    Scene(calls=(SceneCall("stock__count", '{"item": "apples"}', "call_1"),), stop="tools"),
    Scene(text=("There are three.",)),
)


def test_the_page_has_a_program_for_each_native_adapter() -> None:
    assert list(PYTHON) == ["pydantic-ai", "LangChain and LangGraph", "OpenAI Agents SDK"]


@pytest.mark.parametrize("title", PYTHON)
async def test_the_programs_of_the_page_run(title: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PYTHON[title], encoding="utf-8")
    async with ModelServer(scripted(SCENES)).listening() as server:
        ran = await run("adapters", program, tmp_path, server.url)
        (result,) = [each for each in server.received[1].body["messages"] if each["role"] == "tool"]
    assert ran.out == "There are three.\n"
    assert (result["tool_call_id"], result["content"]) == ("call_1", "3")
