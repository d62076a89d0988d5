"""docs/agents.md says what is in the code."""

from __future__ import annotations

import re
from pathlib import Path

from remit.agents.goal import Goal
from remit.agents.repeats import ALLOWED, ENOUGH
from remit.agents.results import READ_MORE
from remit.recipes.agent import agent

PAGE = (Path(__file__).parents[2] / "docs/agents.md").read_text(encoding="utf-8")


def test_every_parameter_is_listed_and_no_other() -> None:
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE) == list(agent.signature.parameters)


def test_the_numbers_on_the_page_are_those_in_force() -> None:
    assert f"{Goal(task='').long_result:,} characters" in PAGE
    assert f"at most; {agent.signature.parameters['turns'].default} if left out" in PAGE
    assert (ALLOWED, ENOUGH) == (3, 3)
    assert f"`{READ_MORE}`" in PAGE


def test_the_code_of_the_page_is_a_recipe() -> None:
    names: dict[str, object] = {}
    exec(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0], names)  # noqa: S102 - our own page
    assert getattr(names["morning"], "name", "") == "morning"
