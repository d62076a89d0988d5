from __future__ import annotations

from typing import Any

import msgspec
import pytest

from remit.canonical import sha256
from remit.parts.recipes.evidence import ChosenClaim, EvidencePiece
from remit.parts.recipes.report import ReportFacts, Searched, compose
from remit.parts.recipes.report_files import ReportProvider
from remit.tools.provider import MemoryKeeper
from remit_testing.providers import PROVIDER_CHECKS, Check, Sample, call_context

CLAIM = ChosenClaim(EvidencePiece("a.md", "A", "", 0, "The words.", "sha256:a"), 0, 10, "The words.", "The words.", "")
ARGS: dict[str, Any] = {
    "report": msgspec.to_builtins(compose(ReportFacts(query="why?", searched=Searched(folder="/x", files=1)), [CLAIM]))
}


@pytest.mark.parametrize("check", PROVIDER_CHECKS, ids=lambda check: check.__name__)
async def test_it_keeps_the_promises_of_a_provider(check: Check) -> None:
    await check(ReportProvider, Sample("report.write", ARGS))


async def test_the_report_is_kept_in_three_forms() -> None:
    keeper = MemoryKeeper()
    context = msgspec.structs.replace(call_context(), keeper=keeper)
    files = (await ReportProvider().invoke("report.write", ARGS, context)).value["artifacts"]
    assert [file["path"] for file in files] == ["report.md", "report.json", "report.html"]
    for file in files:
        data = keeper.blobs[file["sha256"]]
        assert (file["bytes"], file["sha256"]) == (len(data), sha256(data))
    assert keeper.blobs[files[0]["sha256"]].decode() == ARGS["report"]["report"]
    assert msgspec.json.decode(keeper.blobs[files[1]["sha256"]]) == ARGS["report"]
