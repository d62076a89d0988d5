"""Drift of tools: every version that calls were made under, against the tool of today."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from remit.codes import Code
from remit.errors import ChainBrokenError, NotCanonicalError, PayloadErasedError
from remit.journal import kinds as k
from remit.record.uses import Key, Use, UseCollector
from remit.record.walk import jobs_under
from remit.tools.changes import changes
from remit.tools.drift import compare_input, compare_output

if TYPE_CHECKING:
    from remit.journal.event import Event
    from remit.journal.journal import Journal
    from remit.policy.decision import Decision
    from remit.record.decisions import RecordedDecision
    from remit.record.walk import RootOrigin, Take
    from remit.tools.catalog import Catalog
    from remit.tools.tool import Tool

Class = Literal["gone", "breaking", "unknown", "compatible", "version", "annotation_only", "identical"]
Changed = Literal["refused", "asks", "runs"]
"""A call that ran would be refused, or would have to be approved; or one that was held or refused would run."""
CLASSES: Final[tuple[Class, ...]] = (
    "gone", "breaking", "unknown", "compatible", "version", "annotation_only", "identical"
)  # fmt: skip
"""Order from the worst. `unknown`: an older Remit did not keep the schema; `version`: only the version or the
provider is another one.
"""
EXAMPLES: Final = 5
_PROBLEMS: Final = 3
_SCHEMAS: Final[dict[str, Class]] = {
    "identical": "identical", "annotation_only": "annotation_only", "compatible": "compatible", "breaking": "breaking"
}  # fmt: skip


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded version of a tool that is not today's."""

    drift: Class
    provider_id: str
    version: str
    request_schema_hash: str
    response_schema_hash: str
    calls: int
    first_at: int
    """Microseconds since the Unix epoch."""
    last_at: int
    changes: tuple[str, ...]
    """The differences, a line for each."""


class ChangedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded call that would end in another way today."""

    job: str
    """The job, session or call from outside."""
    step: str
    change: Changed
    code: str
    reason: str


class ToolDrift(msgspec.Struct, frozen=True, kw_only=True):
    """The differences of a tool today."""

    tool: str
    drift: Class
    """The worst class among its variants."""
    provider_id: str
    """Today's, as the version; empty: it is gone."""
    version: str
    variants: tuple[Variant, ...]
    """The recorded versions that differ, the worst first."""
    calls: int
    """Calls that were made under these."""
    refused: int
    """Recorded calls, under whatever version, that would be refused today."""
    asks: int
    """Number of calls that would need an approval, and needed none."""
    runs: int
    """Number of calls that were refused or asked about, and would run."""
    examples: tuple[ChangedCall, ...]
    """The first few of these calls, refused ones first."""
    open: int
    """Jobs with a call under these versions that have not ended."""
    ended: int
    open_jobs: tuple[str, ...]
    """The first few of those that have not ended."""


Given = tuple[k.ToolInvocationStarted, "RootOrigin", list[int]]
"""The first call with some arguments, who made it, and how many there were."""


class ToolCollector(UseCollector):
    """Collects the uses of tools, with the arguments that today's schemas may refuse."""

    def __init__(self, catalog: Catalog, tool: str = "", since: int = 0, job: str = "") -> None:
        super().__init__(tool, since)
        self._catalog = catalog
        self._job = job
        self.calls: dict[str, dict[str, Given]] = {}
        """Arguments under another input schema than today's, by tool and digest."""

    @property
    def takers(self) -> Mapping[type[k.Payload], Take]:
        return {**super().takers, k.ToolInvocationStarted: self._announce}

    def other_arguments(self) -> Iterator[tuple[Tool, Iterable[Given]]]:
        """Yield every tool with the arguments that were recorded under another input schema than today's."""
        for name, calls in self.calls.items():
            tool = self._catalog.known(name)
            if tool is not None:
                yield tool, calls.values()

    def _announce(self, origin: RootOrigin, event: Event, payload: k.ToolInvocationStarted) -> None:
        if self._job and origin.id != self._job:
            self._note(origin, event, payload)
            return
        if event.at < self._since:
            return
        self._start(origin, event, payload)
        if event.seq <= origin.taken_until or (self._tool and payload.tool_name != self._tool):
            return
        tool = self._catalog.known(payload.tool_name)
        if tool is not None and tool.quarantined is None and tool.input.hash != payload.request_schema_hash:
            same = self.calls.setdefault(payload.tool_name, {})
            same.setdefault(payload.arguments_hash, (payload, origin, [0]))[2][0] += 1

    def _share(self, origin: RootOrigin, event: Event, key: Key, count: int) -> None:
        """Count what a fork shares as its own if it is the one job looked at; else it counts where it was recorded."""
        if self._job and origin.id != self._job:
            return
        super()._share(origin, event, key, count)
        if self._job:
            self.by_key[key].calls += count


class CallChanges:
    """Recorded calls that would end in another way, by tool."""

    def __init__(self) -> None:
        self.counts: dict[str, dict[str, int]] = {}
        self._examples: dict[str, dict[Changed, list[ChangedCall]]] = {}

    def add(self, tool: str, change: Changed, example: Callable[[], ChangedCall], times: int = 1) -> None:
        """Count a call; the first few are told and kept."""
        self.counts.setdefault(tool, {"refused": 0, "asks": 0, "runs": 0})[change] += times
        examples = self._examples.setdefault(tool, {"refused": [], "asks": [], "runs": []})[change]
        if len(examples) < EXAMPLES:
            examples.append(example())

    def examples(self, tool: str) -> tuple[ChangedCall, ...]:
        """The first few, refused ones first."""
        examples = self._examples.get(tool, {})
        return tuple(call for calls in examples.values() for call in calls)[:EXAMPLES]


def change_of(decided: RecordedDecision, decision: Decision) -> Changed | None:
    """The change if today's rules decide otherwise than it was decided; None: they decide the same."""
    before, now = decided.effect, decision.effect
    if before == now or (before == "ask" and decision.rule_id.startswith("remembered:")):
        return None
    return "refused" if now == "deny" else "asks" if now == "ask" else "runs"


def told_of(decided: RecordedDecision, decision: Decision, change: Changed) -> ChangedCall:
    """Tell of a call that today's rules decide otherwise."""
    code = {"refused": Code.POLICY_DENIED.name, "asks": Code.CONFIRMATION_REQUIRED.name, "runs": ""}[change]
    reason = f"rule {decision.rule_id}: {decision.reason}"
    return ChangedCall(job=decided.origin.id, step=decided.payload.step, change=change, code=code, reason=reason)


async def check_arguments(journal: Journal, collector: ToolCollector, refusals: CallChanges) -> None:
    """Check all recorded arguments against today's schemas, those that are alike once. Raises JournalError."""
    for tool, calls in collector.other_arguments():
        for payload, origin, times in calls:
            try:
                encoded = await journal.value(payload.args, payload.args_blob)
            except PayloadErasedError:
                continue
            args = msgspec.json.decode(encoded or b"{}")
            if not tool.input.admits(args):
                refusals.add(tool.meta.name, "refused", partial(_refused, tool, args, payload, origin), times[0])


def _refused(tool: Tool, args: Any, payload: k.ToolInvocationStarted, origin: RootOrigin) -> ChangedCall:
    """Tell of a call whose arguments today's schema refuses."""
    try:
        problems = tool.input.problems(args)
        reason = "; ".join(f"{problem.path or '/'} {problem.message}" for problem in problems[:_PROBLEMS])
    except NotCanonicalError as error:
        reason = str(error)
    code = Code.INVALID_TOOL_ARGS.name
    return ChangedCall(job=origin.id, step=payload.step, change="refused", code=code, reason=reason)


class ToolComparison:
    """Compares recorded versions with today's catalog."""

    def __init__(self, journal: Journal, catalog: Catalog) -> None:
        self._journal = journal
        self._catalog = catalog
        self._schemas: dict[str, Any] = {}

    async def drifts(self, uses: Mapping[Any, Use], calls: CallChanges) -> list[ToolDrift]:
        """Return the tools that differ, or whose calls would end otherwise, the worst first. Raises JournalError."""
        by_tool: dict[str, list[Use]] = {}
        for use in uses.values():
            by_tool.setdefault(use.key[0], []).append(use)
        drifts = [await self._drift(tool, of_tool, calls) for tool, of_tool in by_tool.items()]
        return sorted((drift for drift in drifts if drift is not None), key=_badness)

    async def _drift(self, name: str, uses: list[Use], calls: CallChanges) -> ToolDrift | None:
        tool = self._catalog.known(name)
        compared = [(use, await self._variant(tool, use)) for use in uses if self._is_known(tool, use)]
        other = [(use, variant) for use, variant in compared if variant.drift != "identical"]
        counts: Mapping[str, Any] = calls.counts.get(name, {"refused": 0, "asks": 0, "runs": 0})
        if not other and not any(counts.values()):
            return None
        differing = [use for use, _ in other] or uses
        jobs = {root: origin for use in differing for root, origin in use.origins.items()}
        own = [origin for origin in jobs.values() if origin.created is not None]
        return ToolDrift(
            tool=name,
            drift=min((variant.drift for _, variant in other), key=CLASSES.index, default="identical"),
            provider_id=tool.meta.provider_id if tool is not None else "",
            version=tool.meta.version if tool is not None else "",
            variants=tuple(sorted((variant for _, variant in other), key=_variant_badness)),
            calls=sum(use.calls for use, _ in other),
            examples=calls.examples(name),
            **jobs_under(own, EXAMPLES),
            **counts,
        )

    def _is_known(self, tool: Tool | None, use: Use) -> bool:
        """Return whether it is known what the provider of a recorded call offers today."""
        return tool is not None or self._catalog.heard(use.key[1]) or use.key[1] not in self._catalog.provider_ids

    async def _variant(self, tool: Tool | None, use: Use) -> Variant:
        use_told = use.told()
        drift, lines = ("gone", ("the tool is gone",)) if tool is None else await self._compared(tool, use)
        return Variant(
            drift=drift,
            provider_id=use_told.provider_id,
            version=use_told.version,
            request_schema_hash=use_told.request_schema_hash,
            response_schema_hash=use_told.response_schema_hash,
            calls=use_told.calls,
            first_at=use_told.first_at,
            last_at=use_told.last_at,
            changes=lines,
        )

    async def _compared(self, tool: Tool, use: Use) -> tuple[Class, tuple[str, ...]]:
        """The class of everything that differs, and what differs."""
        _, provider, version, request = use.key
        meta, classes, lines = tool.meta, list[Class](), list[str]()
        if tool.quarantined is not None:
            return "gone", (f"withheld: {tool.quarantined}",)
        if provider != meta.provider_id:
            classes.append("version")
            lines.append(f"provider: {provider or 'none'} → {meta.provider_id}")
        if version != meta.version and (version or not provider.startswith("mcp_")):
            classes.append("version")
            lines.append(f"version: {version or 'none'} → {meta.version or 'none'}")
        if request and request != tool.input.hash:
            old = await self._schema(request)
            classes.append("unknown" if old is None else _SCHEMAS[compare_input(old, meta.input_schema).value])
            lines += changes(old, meta.input_schema) if old is not None else ["arguments: the old schema was not kept"]
        current = tool.output.hash if tool.output is not None else ""
        for response in use.responses:
            if response != current:
                old = await self._schema(response)
                classes.append("unknown" if old is None else _SCHEMAS[compare_output(old, meta.output_schema).value])
                details = (
                    changes(old, meta.output_schema, "result") if old is not None else ("the old schema was not kept",)
                )
                lines += [f"result {line}".replace("result result", "result") for line in details]
        return min(classes, key=CLASSES.index, default="identical"), tuple(lines)

    async def _schema(self, digest: str) -> Any:
        if digest not in self._schemas:
            try:
                self._schemas[digest] = await self._journal.schema(digest)
            except ChainBrokenError:
                self._schemas[digest] = None
        return self._schemas[digest]


def _variant_badness(variant: Variant) -> tuple[int, int, str]:
    return CLASSES.index(variant.drift), -variant.calls, variant.version


def _badness(drift: ToolDrift) -> tuple[bool, int, int, int, str]:
    """Sorts tools, the worst first: gone, then with calls that would be refused, then by class."""
    lost = drift.drift == "gone" or drift.refused > 0
    return not lost, CLASSES.index(drift.drift), -drift.refused, -drift.asks, drift.tool
