"""Every decision that a package records, taken again from its own rules and facts (`--decisions`).

A call that ran was allowed, or asked about and approved; a question was asked; a refusal by policy was denied. What is
not in the package, such as a value that was erased, cannot be asked, and the decision is not derived.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from remit.evidence.ledger import LedgerEvent
from remit.evidence.rejected import RejectedError
from remit.evidence.rules import RuleModules
from remit.evidence.strict_json import read_json
from remit.evidence.values import path_of

_SECRET = 32
_DECIDED = {"tool_invocation_started", "gate_refused"}
"""The kinds of events that a decision stands in, beside questions."""


class NotDerivedError(Exception):
    """A decision cannot be taken again; the message says why."""


class DerivedDecisions(NamedTuple):
    """Decisions that were taken again."""

    decisions: int
    not_derived: tuple[tuple[str, int], ...]
    """The reason, and how many."""


class _Asked(NamedTuple):
    """A recorded decision: the event that it stands in, the stream of the caller, the effect, and who called."""

    event: LedgerEvent
    stream: str
    effect: str
    session: str
    """The session that a call from outside was made in; empty: it is none."""


class Decisions:
    """Collects decisions with what they are made from, and takes them again at the end."""

    def __init__(self, package: zipfile.ZipFile, sources: Mapping[str, str]) -> None:
        self._package = package
        self._there = set(package.namelist())
        self._questions: list[_Asked] = []
        self._roots: dict[str, dict[str, Any]] = {}
        """The events that say what a job, a session or a call from outside is, by its stream and their kinds."""
        self._foreign: dict[str, float] = {}
        """By stream, the last event that was recorded by another job."""
        self._sessions: dict[str, str] = {}
        """The session that made a call last, by the stream of the call; that asked a question, by the question."""
        self._running: dict[str, str] = {}
        self._results: dict[str, list[tuple[LedgerEvent, str]]] = {}
        """The results of tools, by stream."""
        self._edited: set[str] = set()
        """Questions that people made of others: the gate decides on those arguments when the call is made."""
        self._remembered: dict[str, dict[str, Any]] = {}
        self._tools: dict[str, Any] = {}
        """The last form of each tool that was recorded whole."""
        modules = RuleModules(sources)
        self._rules = modules.load("remit.policy.record")
        self._verdict = modules.load("remit.policy.verdict")
        self._facts = modules.load("remit.policy.decision")
        self._meta = modules.load("remit.tools.meta")
        self._naming = modules.load("remit.tools.names")
        self._approvals = modules.load("remit.policy.approval")
        self._policies: dict[str, Any] = {}

    def take(self, event: LedgerEvent) -> None:
        """Take in an event."""
        kind, payload, stream = event.kind, event.payload, event.stream
        if kind == "tool_invocation_started":
            self._running[payload["invocation_id"]] = payload["tool_name"]
        own = event.seq > self._foreign.get(stream, 0)
        if kind in ("job_created", "session_opened", "job_forked"):
            self._roots.setdefault(stream, {})[kind] = payload
            if kind == "job_forked":
                self._foreign[stream] = event.seq + payload.get("taken", 0) + payload.get("changes", 0)
        elif kind == "tool_invocation_finished":
            if payload["outcome"] == "success" and payload.get("step_outcome", "pure") in self._verdict.DONE:
                tool = self._running.get(payload["invocation_id"], "")
                self._results.setdefault(stream, []).append((event, tool))
        elif kind == "confirmation_decided" and payload["decision"] == "edit":
            self._edited.add(payload.get("replaced_by", ""))
        elif kind == "approval_remembered":
            self._remembered[payload["rule"]["id"]] = payload["rule"]
        elif kind == "call_opened" or (kind == "call_continued" and stream in self._sessions):
            self._sessions[stream] = payload["session"]
        elif kind == "confirmation_requested" or (own and kind in _DECIDED):
            self._note(event)

    def _note(self, event: LedgerEvent) -> None:
        """Take in what may be a decision."""
        kind, payload, stream = event.kind, event.payload, event.stream
        caller, _, question = stream.partition("/confirmation/")
        session = self._sessions.get(caller, "")
        effect = "ask" if question or payload.get("confirmation") else "allow"
        if kind == "confirmation_requested" and not question:  # the caller's own stream says that it waits
            self._sessions[payload["confirmation"]] = session
            return
        if kind == "confirmation_requested":
            before = self._sessions.get(payload.get("edited_from", ""), session)
            session = self._sessions.setdefault(payload["confirmation"], before)
            if not (payload.get("provider_id") and payload.get("policy_hash")):
                return
        elif kind == "gate_refused":
            code, stage, model_call = payload["code"], payload.get("stage", ""), payload.get("model_call", False)
            effect = self._verdict.effect_of_refusal(code, stage, effect, model_call=model_call)
            if effect is None:
                return
        self._questions.append(_Asked(event, caller, effect, session))

    def derive(self) -> DerivedDecisions:
        """Take every decision again. Raise RejectedError for one that its rules and facts do not lead to."""
        missing: dict[str, int] = {}
        self._questions = [decision for decision in self._questions if not self._is_edited(decision.event)]
        for question in self._questions:
            try:
                self._compare(question)
            except NotDerivedError as error:
                missing[str(error)] = missing.get(str(error), 0) + 1
        return DerivedDecisions(len(self._questions) - sum(missing.values()), tuple(sorted(missing.items())))

    def _is_edited(self, event: LedgerEvent) -> bool:
        return event.kind == "confirmation_requested" and event.payload["confirmation"] in self._edited

    def _compare(self, decided: _Asked) -> None:
        event = decided.event
        payload = event.payload
        if not payload.get("policy_kept"):
            raise NotDerivedError("its rules were not kept")
        policy = self._policy(payload["policy_hash"])
        decision = self._verdict.verdict_on(policy, self._recorded(decided, policy))
        rule = payload.get("rule_id", "")
        question, untrusted = (
            event.kind == "confirmation_requested",
            bool({"untrusted", "untrusted_blob"} & payload.keys()),
        )
        if not self._verdict.agrees(decision, decided.effect, rule, question=question, untrusted=untrusted):
            raise RejectedError(
                "event_contradicted",
                f"{event.stream}: event {event.seq}: {payload['tool_name']} was decided {decided.effect} by {rule}, "
                f"and its rules and facts lead to {decision.effect} by {decision.rule_id}",
            )

    def _policy(self, name: str) -> Any:
        policy = self._policies.get(name)
        if policy is None:
            text = self._bytes(name)
            try:
                overlays = [self._bytes(overlay) for overlay in self._rules.overlays_named(text)]
                policy = self._policies[name] = self._rules.policy_of(text, overlays)
            except (ValueError, TypeError) as error:
                raise NotDerivedError("its rules cannot be read") from error
            except Exception as error:
                if not hasattr(error, "message"):
                    raise
                raise NotDerivedError("its rules are of another version") from error
        return policy

    def _recorded(self, decided: _Asked, policy: Any) -> Any:
        """Return the facts of a decision."""
        payload = decided.event.payload
        root_stream = "/".join(decided.stream.split("/")[:2])
        root = self._roots.get(root_stream, {})
        created = root.get("job_created")
        args = self._value(payload, "args")
        if not isinstance(args, dict):
            raise NotDerivedError("its arguments were not recorded")
        tool = self._tool(payload)
        caller = self._facts.Caller(
            principal=payload.get("principal") or (created or {}).get("principal", ""),
            kind=self._kind(root, decided.session),
            recipe=created["name"] if created else "",
            stream=f"session/{decided.session}" if decided.session else decided.stream if created else root_stream,
        )
        query = self._facts.Query(
            tool=tool,
            key=self._naming.key_of(tool.name) if tool is not None else payload["tool_name"],
            args=args,
            caller=caller,
            contract_hash=payload.get("contract_hash", ""),
            prompt_hash=payload.get("prompt_hash", ""),
            now=payload.get("decided_at") or decided.event.at,
        )
        if tool is not None and policy.needs_facts:
            query = self._with_facts(query, decided, policy, root)
        untrusted = self._value(payload, "untrusted") or []
        return self._verdict.RecordedFacts(
            query=query,
            remembered=self._held(payload),
            untrusted=tuple(dict.fromkeys(str(item.get("path", "")) for item in untrusted)),
        )

    def _with_facts(self, query: Any, decided: _Asked, policy: Any, root: dict[str, Any]) -> Any:
        """Return a query with what its rules ask for beside the call."""
        needs = policy.needs(query.tool, query.key)
        recorded = decided.event.payload.get("facts", {})
        if needs.tools and root.get("job_forked", {}).get("shared"):
            raise NotDerivedError("a rule asks for results that another job recorded")
        results = {}
        for tool in needs.tools:
            result = self._result(decided, tool, recorded.get("seen", {}).get(tool))
            if result is not None:
                results[tool] = self._value(result.payload, "result")
        taken = {rule: (calls, Decimal(total)) for rule, (calls, total) in recorded.get("taken", {}).items()}
        counted = {
            each.limit.key(each.rule.id, query): taken[each.rule.id] for each in needs.limits if each.rule.id in taken
        }
        created = root.get("job_created")
        input_value = self._value(created, "input") if created and needs.input else self._facts.UNKNOWN
        facts = self._facts.Facts(input=input_value, seen=results, taken=counted)
        return type(query)(**{**vars(query), "facts": facts})

    def _result(self, decided: _Asked, tool: str, seq: int | None) -> LedgerEvent | None:
        """Return the last result of a tool, which the event may name by its number."""
        results = [event for event, name in self._results.get(decided.stream, []) if name == tool]
        before = [event for event in results if (event.seq == seq if seq else event.at <= decided.event.at)]
        return before[-1] if before else None

    def _tool(self, payload: dict[str, Any]) -> Any:
        """Return the tool as the gate knew it; None: there was none of this name."""
        name = payload["tool_name"]
        if payload.get("model_call"):  # rules know a model by its provider
            name = self._naming.name_of_model(payload.get("provider_id", ""))
        if payload.get("provider_id") and (payload.get("risk_level") or "invocation_id" in payload):
            side, risk = payload.get("side_effect", "read"), payload.get("risk_level", "")
            risks = {"read": "read_only", "write": "write", "unknown": "unknown"}
            schema = payload.get("request_schema_hash", "")
            self._tools[name] = self._meta.ToolMeta(
                name=name,
                provider_id=payload["provider_id"],
                input_schema=read_json(self._bytes(schema), "a schema") if schema else None,
                capability_level=self._meta.Level(payload.get("capability_level", 0)),
                risk_level=self._meta.Risk(risk or risks[side]),
                side_effects=side != "read",
                requires_confirm=payload.get("confirms", False) or payload.get("rule_id") == "default:confirm",
                version=payload.get("tool_version", ""),
                **({"alias": payload["alias"]} if payload.get("alias") else {}),
            )
        elif payload.get("code") == "UNKNOWN_TOOL" or payload.get("rule_id") == "default:unknown-tool":
            return None
        if name not in self._tools:
            raise NotDerivedError("what its tool was is not recorded")
        return self._tools[name]

    def _held(self, payload: dict[str, Any]) -> tuple[Any, ...]:
        """Return the remembered approvals that the gate had."""
        rule = payload.get("rule_id", "")
        answered = [rule[len("remembered:") :]] if rule.startswith("remembered:") else []
        names = dict.fromkeys([*payload.get("facts", {}).get("remembered", ()), *answered])
        if not names.keys() <= self._remembered.keys():
            raise NotDerivedError("a remembered approval is not in the package")
        return tuple(self._approvals.parse_remembered(self._remembered[name]) for name in names)

    def _kind(self, root: dict[str, Any], session: str) -> str:
        if "job_created" in root:
            return "plan" if root["job_created"]["kind"] == "plan" else "job"
        if session:
            root = self._roots.get(f"session/{session}", {})
        if "session_opened" not in root:
            raise NotDerivedError("its caller is not in the package")
        face = root["session_opened"].get("face", "mcp")
        return face if face in ("mcp", "http") else "session"

    def _value(self, payload: dict[str, Any], name: str) -> Any:
        """Return a value of an event; None: it has none."""
        ref = payload.get(f"{name}_blob")
        if ref is None:
            return payload.get(name)
        data = self._bytes(ref["digest"])
        return read_json(data[_SECRET if ref.get("key") else 0 :], "a value")

    def _bytes(self, name: str) -> bytes:
        path = path_of(name)
        if path not in self._there:
            raise NotDerivedError("a value is not in the package")
        return self._package.read(path)
