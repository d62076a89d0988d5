"""The log on stderr as JSON: what each line names, and that nothing beside it is written."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from remit.cli.logs import log_as_json, log_to_stderr
from remit.gateway.call import LogContext, log_context
from tests.cli.conftest import Project

SHOP = """
import logging
from remit import Run, recipe, tool

log = logging.getLogger("shop")

@tool("shop.weigh", level="L0")
def weigh(name: str) -> str:
    "Weigh a thing."
    log.warning("%s is\\nheavy", name)
    return name

@recipe("packs")
async def packs(run: Run, name: str) -> str:
    log.warning("packing")
    await run.gather(run.call("shop.weigh", {"name": name}), run.call("shop.weigh", {"name": "box"}))
    log.error("packed")
    return name
"""


@pytest.fixture(autouse=True)
def usual_log() -> Iterator[None]:
    root, logger = logging.getLogger(), logging.getLogger("remit")
    before = root.handlers[:], logger.handlers[:], logger.level, logger.propagate
    yield
    root.handlers[:], logger.handlers[:], logger.level, logger.propagate = before


def test_lines_of_own_code_name_job_step_and_tool(project: Project) -> None:
    (project.folder / "shop.py").write_text(SHOP)
    (project.folder / "remit.toml").write_text('app.modules = ["shop.py"]\noutput.log = "json"\n')
    done = project.here("--quiet", "run", "packs", "--name", "vase")
    assert done.status == 0
    lines = [json.loads(line) for line in done.err.splitlines()]
    job = lines[0]["job"]
    assert [(line["level"], line["message"], line.get("step"), line.get("tool"), line["job"]) for line in lines] == [
        ("WARNING", "packing", None, None, job),
        ("WARNING", "vase is\nheavy", "1.0.1", "shop.weigh", job),
        ("WARNING", "box is\nheavy", "1.1.1", "shop.weigh", job),
        ("ERROR", "packed", None, None, job),
    ]
    assert job.startswith("job_")
    assert {line["logger"] for line in lines} == {"shop"}


def test_the_next_command_logs_text_again(project: Project) -> None:
    log_to_stderr(0)
    log_as_json()
    before = logging.getLogger().handlers[:]
    assert project.here("jobs").status == 0
    assert len(logging.getLogger().handlers) == len(before) - 1


def lines_of(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_a_line_whose_arguments_do_not_fit_is_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr(0)
    log_as_json()
    (handler,) = logging.getLogger("remit").handlers
    handler.emit(logging.LogRecord("shop", logging.WARNING, __file__, 1, "%d pieces", ("some",), None))
    assert [line["message"] for line in lines_of(capsys)] == ["%d pieces"]


def test_an_exception_is_one_line_and_everything_is_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr(1)
    log_as_json()
    try:
        raise OSError("\x1b[2Jgone \u202e")
    except OSError:
        logging.getLogger("remit.jobs").exception("it failed: %s", "\u2028")
    text = capsys.readouterr().err
    assert (text.isascii(), text.count("\n"), "\x1b" in text) == (True, 1, False)
    line = json.loads(text)
    assert line["message"] == "it failed: \u2028"
    assert line["error"].endswith("OSError: \x1b[2Jgone \u202e")
    assert line["at"].endswith("Z")
    assert "job" not in line


async def test_what_outlives_a_call_is_no_longer_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr(1)
    log_as_json()
    place, over = LogContext("call/c1", "1", "a.b"), asyncio.Event()

    async def connection() -> None:
        logging.getLogger("remit.mcp").warning("opened")
        await over.wait()
        logging.getLogger("remit.mcp").warning("lost")

    token = log_context.set(place)
    task = asyncio.create_task(connection())
    log_context.reset(token)
    await asyncio.sleep(0)  # noqa: TID251 - lets the task begin
    place.open = False
    over.set()
    await task
    opened, lost = lines_of(capsys)
    assert (opened["stream"], opened["step"], opened["tool"]) == ("call/c1", "1", "a.b")
    assert not {"stream", "step", "tool"} & set(lost)
