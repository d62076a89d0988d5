"""The runner of TOOL tickets in JavaScript, as examples/node has it, at a real server."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import ROOT, Project
from tests.cli.test_remote import serving
from tests.cli.test_server import answer
from tests.patience import PATIENCE_S

RUNNER = ROOT / "examples" / "node" / "runner.mjs"
NODE = shutil.which("node")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(NODE is None, reason="there is no Node.js on this machine")]
STEPS: dict[str, list[dict[str, Any]]] = {
    "done": [{"tool_name": "fs_read", "args": {"path": "a.txt"}}, {"tool_name": "fs_list", "args": {}}],
    "failed": [{"tool_name": "fs_read", "args": {"path": "none.txt"}}],
    "blocked": [{"tool_name": "no_such_tool", "args": {}}],
}
"""Steps of a ticket, by the state that it ends in."""


def create(url: str, steps: list[dict[str, Any]]) -> str:
    event = {"type": "message", "thread_id": "t1", "content": "hello"}
    document = {"type": "TOOL", "event": event, "tool_input": {"tool_steps": steps}}
    status, ticket = answer(f"{url}/v1/tickets", document)
    assert status == 201, ticket
    return str(ticket["id"])


def test_a_runner_in_javascript_works_on_tickets_until_it_is_told_to_stop(project: Project) -> None:
    (project.folder / "a.txt").write_text("hello", encoding="utf-8")
    with serving(project, "--no-work") as url:
        tickets = {create(url, steps): state for state, steps in STEPS.items()}
        with run(project.folder, url) as runner:
            assert runner.stdout is not None
            for _ in tickets:
                assert runner.stdout.readline()
            late = create(url, STEPS["done"])
            assert runner.stdout.readline().split()[:2] == [late, "ok"]
            runner.send_signal(signal.SIGTERM)
            assert runner.wait(PATIENCE_S) == 0
        for ticket, state in {**tickets, late: "done"}.items():
            shown = answer(f"{url}/v1/tickets/{ticket}")[1]
            assert shown["status"] == state, json.dumps(shown)
        outputs = answer(f"{url}/v1/tickets/{late}")[1]["metadata"]["final_outputs"]
        assert outputs["tool_verdict"]["status"] == "PROCEED"
        assert [step["tool_name"] for step in outputs["tool_context"]["tool_trace"]] == ["fs_read", "fs_list"]


def test_a_runner_without_a_valid_token_ends_with_an_error(project: Project) -> None:
    digest = "0" * 64
    project.configure(f'[[clients]]\nprincipal = "node"\nsha256 = "{digest}"\nscopes = ["work", "call"]\n')
    with serving(project, "--no-work") as url, run(project.folder, url, REMIT_TOKEN="wrong") as runner:
        _, error = runner.communicate(timeout=PATIENCE_S)
        assert runner.returncode != 0
        assert "UNAUTHENTICATED" in error


def test_a_runner_outlasts_a_balancer_that_has_no_server(tmp_path: Path) -> None:
    """Which closes each connection at once."""
    with socket.create_server(("127.0.0.1", 0)) as balancer:
        balancer.settimeout(PATIENCE_S)
        url = f"http://127.0.0.1:{balancer.getsockname()[1]}"
        with run(tmp_path, url, REMIT_PATIENCE_S="0.1") as runner:
            for _ in range(3):
                balancer.accept()[0].close()
            runner.send_signal(signal.SIGTERM)
            assert runner.wait(PATIENCE_S) == 0


def run(folder: Path, url: str, **env: str) -> subprocess.Popen[str]:
    assert NODE is not None
    return subprocess.Popen(
        [NODE, str(RUNNER)],
        cwd=folder,
        env={"REMIT_URL": url, "REMIT_OWNER": "node-1", **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
