"""The metrics of a server, and the alert rules and the dashboard of deploy/, read by Prometheus itself."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
import yaml

from remit import Remit, Run, recipe, tool
from remit.clock import SystemClock
from remit.settings import load
from tests.api.conftest import Served
from tests.patience import PATIENCE_S
from tests.ports import free_port

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = DEPLOY / "prometheus/alerts.yml"
LONG = "x" * 4_000
PROMTOOL = shutil.which("promtool") or ""


@recipe("asks")
async def asks(run: Run) -> str:
    return (await run.model("?")).text


@tool("shop.pay", level="L0")
def pay(cents: int) -> str:
    """Pay somebody."""
    return f"paid {cents}"


def _panels() -> list[dict[str, Any]]:
    board = json.loads((DEPLOY / "grafana/remit.json").read_text(encoding="utf-8"))
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def _shown() -> list[str]:
    """The expressions of the dashboard, with what Grafana puts into them."""
    targets = [target for panel in _panels() for target in panel["targets"]]
    return [target["expr"].replace("$__rate_interval", "5m") for target in targets]


def _exprs() -> list[str]:
    (group,) = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [*(rule["expr"] for rule in group["rules"]), *_shown()]


def _opened(folder: Path) -> Remit:
    (folder / "script.yaml").write_text(f"- say: {LONG}\n")
    flags: dict[str, Any] = {
        "models.default": "scripted:script.yaml",
        "models.budgets": [{"name": "team", "tokens": 1_000, "then": "tell"}],
        "limits.tools": {"shop.*": {"concurrency": 4}},
        "policy.pots": {"pays": {"per": "day", "sum": "cents", "max": 1_000}},
        "policy.rules": [{"id": "p", "effect": "allow", "tools": ["shop.*"], "limit": {"pot": "pays"}}],
        "journal.url": str(folder / "j.db"),
    }
    return Remit(settings=load(cwd=folder, file=None, env={}, flags=flags), recipes=[asks], tools=[pay])


async def _worked(remit: Remit) -> None:
    """Ask a model, and pay a quarter of what is in the pot."""
    assert await (await remit.start(asks())).result() == LONG
    await _paid(remit, 250)


async def _paid(remit: Remit, cents: int) -> None:
    session = await remit.service.sessions.open("mcp", principal="ann")
    assert (await remit.service.sessions.call(session, "shop.pay", {"cents": cents})).ok


async def test_a_model_is_counted_and_every_metric_of_the_alerts_is_one(tmp_path: Path, served: Served) -> None:
    async with _opened(tmp_path) as remit, served(remit) as client:
        await _worked(remit)
        lines = (await client.get("/metrics")).body.decode().splitlines()
    samples = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    name = "scripted:script.yaml"
    assert samples[f'model_attempts_total{{code="ok",model="{name}"}}'] == "1.0"
    assert samples[f'model_seconds_count{{model="{name}"}}'] == "1.0"
    assert float(samples[f'model_tokens_total{{direction="output",model="{name}"}}']) > 900
    assert float(samples['model_budget_percent{budget="team",share=""}']) > 90
    assert samples['queue_lag_seconds{kind="job"}'] == "0.0"
    assert samples['pot_percent{bound="sum",pot="pays"}'] == "25.0"
    assert samples['call_limit_percent{bound="concurrency",limit="shop.*"}'] == "0.0"
    known = {re.split(r"[{ ]", line.removeprefix("# TYPE "))[0] for line in lines if line.startswith("# TYPE")}
    used = {word for expr in _exprs() for word in re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", re.sub(r"\{.*?\}", "", expr))}
    assert {word.removesuffix("_bucket") for word in used - {"histogram_quantile"}} <= known


def test_the_panels_of_the_dashboard_do_not_lie_on_each_other() -> None:
    places = [panel["gridPos"] for panel in _panels()]
    cells = [(place["x"] + x, place["y"] + y) for place in places for x in range(place["w"]) for y in range(place["h"])]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24
    assert len({panel["id"] for panel in _panels()}) == len(places)


@pytest.mark.slow
@pytest.mark.skipif(not PROMTOOL, reason="needs Debian's package prometheus")
async def test_prometheus_takes_the_metrics_and_the_alerts(tmp_path: Path, served: Served) -> None:
    checked = await asyncio.create_subprocess_exec(PROMTOOL, "check", "rules", RULES)
    assert await checked.wait() == 0
    port, clock = free_port(), SystemClock()
    async with _opened(tmp_path) as remit, served(remit) as client:
        await _worked(remit)
        await _paid(remit, 600)
        target = client.url.removeprefix("http://")
        scrape = {"job_name": "remit", "scrape_interval": "1s", "static_configs": [{"targets": [target]}]}
        config = tmp_path / "prometheus.yml"
        config.write_text(json.dumps({"rule_files": [str(RULES)], "scrape_configs": [scrape]}))
        program = await asyncio.create_subprocess_exec(
            "prometheus",
            f"--config.file={config}",
            f"--storage.tsdb.path={tmp_path / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{port}",
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with aiohttp.ClientSession() as session, asyncio.timeout(PATIENCE_S):
                while not await _values(session, port, "model_attempts_total"):
                    await clock.sleep(0.2)
                assert (await _values(session, port, "up"))[0]["value"][1] == "1"
                (full,) = await _values(session, port, "max by (budget, share) (model_budget_percent) >= 80")
                assert full["metric"] == {"budget": "team"}
                while not (taken := await _values(session, port, "max by (pot, bound) (pot_percent) >= 80")):
                    await clock.sleep(0.2)
                assert taken[0]["metric"] == {"pot": "pays", "bound": "sum"}
                for expr in _exprs():
                    await _values(session, port, expr)
                for expr in _shown():
                    assert "[" in expr or await _values(session, port, expr), f"{expr} shows nothing"
        finally:
            program.terminate()
            await program.wait()


async def _values(session: aiohttp.ClientSession, port: int, expr: str) -> list[Any]:
    """The series of an expression; none where Prometheus does not answer yet. A wrong expression fails."""
    try:
        async with session.get(f"http://127.0.0.1:{port}/api/v1/query?query={quote(expr)}") as response:
            answer = await response.json()
    except aiohttp.ClientConnectionError:
        return []
    if response.status == 503:  # it is starting
        return []
    assert answer["status"] == "success", answer
    series: list[Any] = answer["data"]["result"]
    return series
