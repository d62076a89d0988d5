"""The files of deploy/: valid, and true of what runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import asyncpg
import click
import pytest
import yaml

from remit import Remit, Run, recipe
from remit.cli.root import root
from remit.http.guard import Guard
from remit.journal.postgres.server import Address
from remit.settings import load
from remit_testing.clock import ManualClock
from tests.journal.storages import PostgresStorage
from tests.opened import until_waiting
from tests.ports import free_port

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
SCHEMAS = ROOT / "build/peers-schemas"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
ANALYZE = shutil.which("systemd-analyze")
GIVEN = {"REMIT_JOURNAL": "postgresql://remit@db/remit", "OPERATOR_TOKEN": "t" * 40}


def documents(name: str) -> list[Any]:
    return list(yaml.safe_load_all((DEPLOY / name).read_text(encoding="utf-8")))


@pytest.mark.slow
@pytest.mark.skipif(not (SCHEMAS / "compose_spec").exists(), reason="needs build/peers-schemas: make peers")
def test_manifests_and_the_compose_file_fit_their_schemas_and_a_misspelt_key_does_not(tmp_path: Path) -> None:
    keys = {
        "terminationGracePeriodSeconds": "kubernetes/remit.yaml",
        "cooldownPeriod": "kubernetes/keda.yaml",
        "stop_grace_period": "compose.yaml",
    }
    for key, name in keys.items():
        shutil.copytree(DEPLOY, tmp_path / key)
        file = tmp_path / key / name
        file.write_text(file.read_text(encoding="utf-8").replace(key, key[:-1]), encoding="utf-8")
    program: list[str | Path] = [
        sys.executable,
        Path(__file__).with_name("schemas.py"),
        DEPLOY,
        *(tmp_path / key for key in keys),
    ]
    env = {**os.environ, "PYTHONPATH": str(SCHEMAS)}
    done = subprocess.run(program, env=env, capture_output=True, text=True, check=True)
    right, *wrong = json.loads(done.stdout)
    assert right == ""
    assert all(key[:-1] in fault for key, fault in zip(keys, wrong, strict=True)), wrong


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
@pytest.mark.skipif(ANALYZE is None, reason="needs systemd-analyze")
def test_units_are_valid(unit: Path, tmp_path: Path) -> None:
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text(encoding="utf-8").replace("/opt/remit/bin/remit", "/bin/true"), encoding="utf-8")
    done = subprocess.run([str(ANALYZE), "verify", copy], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_settings_load_and_every_command_is_one() -> None:
    settings = load(cwd=DEPLOY, env=GIVEN)
    assert settings.journal.url == GIVEN["REMIT_JOURNAL"]
    units = [
        re.findall(r"^ExecStart=\S+/remit (.*)$", unit.read_text(encoding="utf-8"), re.MULTILINE) for unit in UNITS
    ]
    (compose,) = documents("compose.yaml")
    deployments = [each for each in documents("kubernetes/remit.yaml") if each["kind"] == "Deployment"]
    commands = [line.split() for (line,) in units]
    commands += [service["command"] for service in compose["services"].values() if "command" in service]
    commands += [each["spec"]["template"]["spec"]["containers"][0]["args"] for each in deployments]
    for word, *options in commands:
        command = root.get_command(click.Context(root), word)
        assert command is not None
        command.make_context(word, options)


def test_the_secret_has_every_key_that_is_read() -> None:
    read = {
        name: set(re.findall(r"name: remit, key: ([\w-]+)", (DEPLOY / "kubernetes" / name).read_text(encoding="utf-8")))
        for name in ("remit.yaml", "keda.yaml")
    }
    made = re.findall(r"--from-literal=([\w-]+)=", (DEPLOY / "kubernetes/remit.yaml").read_text(encoding="utf-8"))
    assert read == {"remit.yaml": {"journal", "operator-token"}, "keda.yaml": {"scaler"}}
    assert set(made) == {"journal", "operator-token", "scaler"}


def test_a_server_goes_on_answering_and_everyone_waits_longer_than_it_and_its_calls_take() -> None:
    settings = load(cwd=DEPLOY, env=GIVEN)
    assert settings.serve.drain_seconds > 0
    drain = settings.serve.drain_seconds + settings.jobs.drain_seconds
    (compose,) = documents("compose.yaml")
    graces = [int(compose["x-remit"]["stop_grace_period"].removesuffix("s"))]
    graces += [int(found) for unit in UNITS for found in re.findall(r"TimeoutStopSec=(\d+)", unit.read_text())]
    for each in documents("kubernetes/remit.yaml"):
        if each["kind"] == "Deployment":
            graces.append(each["spec"]["template"]["spec"]["terminationGracePeriodSeconds"])
    assert len(graces) == 5
    assert min(graces) > drain


def test_the_image_copies_what_is_there_and_its_pins_agree() -> None:
    lines = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    copies = [line.split()[1:-1] for line in lines if line.startswith("COPY") and "--from" not in line]
    assert [name for names in copies for name in names if not (ROOT / name).exists()] == []
    pins: dict[str, set[str]] = {}
    for name in re.findall(r"--requirement (\S+)", "\n".join(lines)):
        for package, version in re.findall(
            r"^([\w.-]+)==(\S+)", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE
        ):
            pins.setdefault(package, set()).add(version)
    assert pins["dbos"]
    assert {package: versions for package, versions in pins.items() if len(versions) > 1} == {}


def servers() -> dict[str, tuple[list[str], str]]:
    """How servers are started, and the Python that asks whether one lives."""
    (compose,) = documents("compose.yaml")
    (deployment, *_) = documents("kubernetes/remit.yaml")
    service, pod = compose["services"]["server"], deployment["spec"]["template"]["spec"]["containers"][0]
    return {
        "compose": (service["command"], service["healthcheck"]["test"][-1]),
        "kubernetes": (pod["args"], pod["livenessProbe"]["exec"]["command"][-1]),
    }


@pytest.mark.parametrize("name", ["compose", "kubernetes"])
def test_a_server_goes_by_the_name_that_its_probe_uses(name: str) -> None:
    command, probe = servers()[name]
    names = [value for option, value in pairwise(command) if option in {"--host", "--known-as"}]
    (host,) = re.findall(r"http://([^/]+)/", probe)
    Guard(names, [], ManualClock()).admit_page({"host": host})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["compose", "kubernetes"])
def test_a_server_answers_its_probe_until_it_is_told_to_stop(tmp_path: Path, name: str) -> None:
    port = str(free_port())
    given = {"REMIT_CONFIG": str(DEPLOY / "remit.toml"), "REMIT_JOURNAL": str(tmp_path / "journal.db")}
    env = {**os.environ, **GIVEN, **given, "REMIT_TRUST": "1", "REMIT_SERVE_DRAIN_SECONDS": "0"}
    words, probe = servers()[name]
    code = probe.replace("8320", port)
    command = [sys.executable, "-m", "remit", *words, "--port", port]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            assert port in server.stdout.readline()
            subprocess.run([sys.executable, "-c", code], env=env, check=True)
            server.terminate()
            assert server.wait() == 0
        finally:
            server.kill()
    assert subprocess.run([sys.executable, "-c", code], env=env, check=False, stderr=subprocess.PIPE).returncode == 1


@recipe("listens")
async def listens(run: Run) -> None:
    """Wait for a signal."""
    await run.wait_signal("go")


@pytest.mark.slow
async def test_keda_counts_jobs_that_run_or_are_due_and_no_others(tmp_path: Path, storage: PostgresStorage) -> None:
    (query,) = [
        trigger["metadata"]["query"]
        for document in documents("kubernetes/keda.yaml")
        for trigger in document["spec"].get("triggers", ())
    ]
    place = Address.parse(storage.url)
    settings = load(env={}, cwd=tmp_path, flags={"journal.url": storage.url, "app.principal": "alice"})
    db = await asyncpg.connect(place.dsn)
    try:

        async def counted() -> int:
            return int(await db.fetchval(query.replace("remit.heads", f"{place.schema}.heads")))

        async with Remit(settings=settings, recipes=[listens], work=False) as remit:
            jobs = [await remit.start(listens()) for _ in range(3)]
            assert await counted() == 3
        async with Remit(settings=settings, recipes=[listens]) as remit:
            for job in jobs:
                await until_waiting(remit, job.id)
            assert await counted() == 0
            await remit.job(jobs[0].id).signal("go", None)
            await remit.job(jobs[0].id)
            assert await counted() == 0
    finally:
        await db.close()
