"""docs/agents.md says what is in the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from remit import Remit
from remit.parts.agents.loop import ALLOWED, ENOUGH, Goal
from remit.parts.agents.recipes import agent
from remit.record.transcript import READ_MORE
from remit.settings import load

PAGE = (Path(__file__).parents[2] / "docs/agents.md").read_text(encoding="utf-8")


def test_every_parameter_is_listed_and_no_other() -> None:
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE) == list(agent.signature.parameters)


def test_the_numbers_on_the_page_are_those_in_force() -> None:
    assert f"{Goal(task='').long_result:,} characters" in PAGE
    assert f"at most; {agent.signature.parameters['turns'].default} if left out" in PAGE
    assert (ALLOWED, ENOUGH) == (3, 3)
    assert f"`{READ_MORE}`" in PAGE


def code_of(name: str) -> Any:
    """What a block of the page defines."""
    names: dict[str, object] = {}
    (block,) = [block for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if f"def {name}(" in block]
    exec(block, names)  # noqa: S102 - our own page
    return names[name]


def test_the_code_of_the_page_is_a_recipe() -> None:
    assert code_of("morning").name == "morning"


async def test_the_code_of_the_page_goes_on_with_a_conversation(tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text("[{say: Milk.}, {expect: last week, say: Bread.}]", encoding="utf-8")
    flags = {"models.default": "scripted:script.yaml", "journal.url": ":memory:"}
    async with Remit(settings=load(cwd=tmp_path, file=None, env={}, flags=flags)) as remit:
        job = await remit.start(agent(task="What did we buy?"))
        await job.result()
        messages = await code_of("ask_again")(remit, job.id)
    assert [message["content"] for message in messages][1::2] == ["Milk.", "Bread."]
