"""AEL with two recorders: an agent's Remit, and one that wraps the MCP server which the agent calls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from base64 import b64encode
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from remit import Run, recipe, tool
from remit.errors import UsageError
from remit.evidence.anchors import MOST
from remit.evidence.answer import CheckAnswer
from remit.journal import kinds as k
from remit.journal.event import HeadQuery
from remit.parts.audit.anchoring.client import AnchorClient
from remit.parts.audit.anchoring.registrar import Registrar
from remit.parts.audit.formats import ael, catalog
from remit.parts.audit.formats import ael_record as ael_trace
from remit.parts.audit.formats.account import Bundle, ExportAccount, pack
from remit.parts.audit.formats.ael_anchors import FILE, anchored
from remit.parts.audit.formats.ael_check import join
from remit.parts.audit.formats.keys import OperatorSigner
from remit.parts.audit.package import write_package
from remit.parts.audit.sessions import sessions_of
from tests.dates import DATE_ENV
from tests.opened import OpenRemit
from tests.parts.audit.anchoring.log import holder, log_in
from tests.parts.audit.formats.errands import recorder_of

CHECKER = os.environ.get("REMIT_TEST_AELCHECK", "")
AGENT, GATEWAY = holder(5), holder(6)
SERVER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    result = {
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                       "serverInfo": {"name": "shop", "version": "1"}},
        "tools/list": {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "found"}]},
    }.get(message["method"])
    if "id" in message:
        answer = {"result": result} if result else {"error": {"code": -32601, "message": "no"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""


@tool("own.think", level="L0")
def think(text: str) -> str:
    """Think."""
    return text


@recipe("errand")
async def errand(run: Run) -> None:
    """Look twice, and think between."""
    await run.call("mcp.shop.look", {})
    await run.call("own.think", {"text": "hm"})
    await run.call("mcp.shop.look", {"again": True})


class Side(NamedTuple):
    """What one recorder has of the calls."""

    account: ExportAccount
    signer: OperatorSigner

    def written(self, place: Path, *, without: int | None = None) -> Path:
        """Its artifact, perhaps without one of the calls that the boundary has seen."""
        crossed = [entry for entry in self.account.entries if ael_trace.span_of(entry) is not None]
        held = list(self.account.entries)
        if without is not None:
            self.account.entries.remove(crossed[without])
        place.write_bytes(pack(ael.write(self.account, self.signer)))
        self.account.entries[:] = held
        return place

    def publish(self, folder: Path) -> None:
        """Put its public key into a folder."""
        folder.mkdir(exist_ok=True)
        (folder / f"{self.signer.name}.pub").write_bytes(self.signer.published()[f"{self.signer.name}.pub"])


async def side(remit: Any, stream: str, signer: OperatorSigner = AGENT) -> Side:
    """What a journal has of a stream, and who signs it."""
    package = BytesIO()
    await write_package(remit.runtime.journal, stream, package)
    account = ExportAccount(package)
    times = [entry.at for entry in account.entries]
    account.sessions = await sessions_of(remit.runtime.journal, account.last, (min(times), max(times)))
    return Side(account, signer)


async def both(remit_in: OpenRemit, folder: Path, log: AnchorClient | None = None) -> tuple[Side, Side]:
    """An agent's job, and the session of the gateway that saw its calls; a recorder signed in both journals.

    A log got the newest records of both meanwhile, if there is one.
    """
    gateway = folder / "gateway"
    gateway.mkdir()
    (gateway / "remit.toml").write_text('[journal]\nurl = "journal.db"\n')
    (gateway / "server.py").write_text(SERVER)
    wrap = ["--config", str(gateway / "remit.toml"), "mcp", "wrap", "--name", "shop", "--level", "look=L0", "--"]
    server = {
        "name": "shop",
        "command": [sys.executable, "-m", "remit", *wrap, sys.executable, str(gateway / "server.py")],
        "env": {**DATE_ENV, "REMIT_TRUST": "1"},
        "level": "L0",
    }
    behind = remit_in(work=False, flags={"journal.url": str(gateway / "journal.db")})
    async with behind, remit_in(tools=[think], recipes=[errand], flags={"mcp.servers": [server]}) as remit:
        own, other = recorder_of(remit, folder), recorder_of(behind, folder, "log.example/gateway")
        for recorder in (own, other):
            await recorder.look(at_once=True)
        job = await remit.start(errand())
        await job
        for recorder in (own, other):
            await recorder.cover()
            await recorder.end()
        if log is not None:
            for one, signer in ((remit, AGENT), (behind, GATEWAY)):
                registrar = Registrar(one.runtime.journal, log, signer, lambda _: None)
                await registrar.begin()
                assert await registrar.catch_up()
        (session,) = await behind.runtime.journal.heads(HeadQuery(kind="session"))
        return await side(remit, f"job/{job.id}"), await side(behind, session.stream, GATEWAY)


def joined(agent: Path, gateway: Path, place: Path) -> CheckAnswer:
    """The answer about an artifact of both."""
    place.write_bytes(pack(join(Bundle(agent), gateway, "same-operator")))
    answer = catalog.check(place, place.parent / "keys")
    assert answer is not None
    return answer


@pytest.mark.slow
async def test_two_recorders_of_the_same_calls_are_compared(remit_in: OpenRemit, tmp_path: Path) -> None:
    agent, gateway = await both(remit_in, tmp_path)
    for one in (agent, gateway):
        one.publish(tmp_path / "keys")
    mine, theirs = agent.written(tmp_path / "agent.zip"), gateway.written(tmp_path / "gateway.zip")
    whole = tmp_path / "both.zip"
    answer = joined(mine, theirs, whole)
    assert (answer.verdict, answer.code) == ("valid", None)
    manifest = json.loads(Bundle(whole).read("manifest.json"))
    assert sorted(manifest["runs"])[:2] == ["recorder/1:decisions", "recorder/1:events"]
    traces = [row["id"] for row in manifest["recorders"] if row["run"].startswith("trace/")]
    assert [name.rpartition("-")[2] for name in traces] == ["agents", "gateway"]

    with pytest.raises(UsageError, match="both call a recorder"):
        join(Bundle(mine), mine, "independent")
    for left_out in (0, 1):
        lacking = agent.written(tmp_path / "less.zip", without=left_out)
        assert joined(lacking, theirs, tmp_path / "bad.zip").code == "m"
        lacking = gateway.written(tmp_path / "less.zip", without=left_out)
        assert joined(mine, lacking, tmp_path / "bad.zip").code == "m"
    same = Side(gateway.account, agent.signer).written(tmp_path / "same.zip")
    assert joined(mine, same, tmp_path / "bad.zip").code == "l"

    assert_granted(whole, "AEL-2 +R")


@pytest.mark.slow
async def test_what_a_log_got_meanwhile_anchors_both(remit_in: OpenRemit, tmp_path: Path) -> None:
    with log_in(tmp_path, AGENT, GATEWAY) as log:
        agent, gateway = await both(remit_in, tmp_path, log)
        for one in (agent, gateway):
            one.publish(tmp_path / "keys")
        (tmp_path / "keys" / f"{log.fingerprint}.pub").write_bytes(b64encode(log.key.public))
        whole, bad = tmp_path / "both.zip", tmp_path / "bad.zip"
        mine, theirs = agent.written(tmp_path / "agent.zip"), gateway.written(tmp_path / "gateway.zip")
        files = anchored(join(Bundle(mine), theirs, "independent"), log.prove, log.fingerprint, MOST)
        whole.write_bytes(pack(files))
        answer = catalog.check(whole, tmp_path / "keys")
        assert answer is not None
        assert (answer.code, "4 anchors, 0 records after the last" in answer.words) == (None, True), answer
        assert_granted(whole, "AEL-3 +R")
        alone = anchored(ael.write(*agent), log.prove, log.fingerprint, MOST)
        mine.write_bytes(pack(alone))
        assert FILE in alone
        assert FILE not in join(Bundle(mine), theirs, "independent")  # one head of the log proves both, or none

        lacking = gateway.written(tmp_path / "other.zip", without=0)
        again = join(Bundle(agent.written(tmp_path / "less.zip", without=0)), lacking, "independent")
        assert FILE not in anchored(again, log.prove, log.fingerprint, MOST)  # both left a call out, and signed again
        again |= {FILE: files[FILE], "manifest.json": files["manifest.json"]}
        bad.write_bytes(pack(again))
        answer = catalog.check(bad, tmp_path / "keys")
        assert answer is not None
        assert answer.code == "p"


def assert_granted(whole: Path, level: str) -> None:
    """Ask the reference checker, if there is one, what it grants the run of the trace."""
    if not CHECKER:
        return
    folder, bundle = whole.parent / "artifact", Bundle(whole)
    for name in bundle.names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(bundle.read(name))
    command = [CHECKER, "--keys", str(whole.parent / "keys"), str(folder)]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    (trace,) = (line for line in said.splitlines() if line.startswith("run trace/") and "AEL" in line)
    assert f": {level} " in trace, said


async def test_an_artifact_of_other_calls_is_not_joined(remit_in: OpenRemit, tmp_path: Path) -> None:
    async with remit_in(tools=[think], recipes=[errand]) as remit:
        session = await remit.service.sessions.open("mcp", principal="ann")
        await remit.service.sessions.call(session, "own.think", {"text": "hm"})
        alone = (await side(remit, f"session/{session}")).written(tmp_path / "alone.zip")
    with pytest.raises(UsageError, match="saw no call"):
        join(Bundle(alone), alone, "independent")
    (tmp_path / "text.zip").write_text("hm")
    with pytest.raises(UsageError, match="not an artifact"):
        join(Bundle(alone), tmp_path / "text.zip", "independent")


@pytest.mark.parametrize(
    ("given", "span"),
    [
        ({"client": {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}}, ael_trace.CallSpan("a" * 32, "b" * 16)),
        ({"client": {"traceparent": "00-a-b-01"}}, None),
        (
            {"tool_name": "mcp.shop.look", "trace_id": "c" * 32, "span_id": "d" * 16},
            ael_trace.CallSpan("c" * 32, "d" * 16),
        ),
        ({"trace_id": "c" * 32, "span_id": "d" * 16}, None),
        ({"tool_name": "mcp.shop.look", "span_id": ""}, None),
    ],
)
async def test_a_call_is_named_by_its_callers_span(
    remit_in: OpenRemit, tmp_path: Path, given: dict[str, Any], span: ael_trace.CallSpan | None
) -> None:
    async with remit_in(tools=[think]) as remit:
        session = await remit.service.sessions.open("mcp", principal="ann")
        await remit.service.sessions.call(session, "own.think", {"text": "hm"})
        account = (await side(remit, f"session/{session}")).account
    (entry,) = (entry for entry in account.entries if isinstance(entry.payload, k.ToolInvocationStarted))
    assert entry.payload is not None
    assert ael_trace.span_of(entry._replace(payload=msgspec.structs.replace(entry.payload, **given))) == span
