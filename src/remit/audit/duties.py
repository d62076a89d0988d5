"""The duties of record-keeping, each with the events that answer it: the table behind `remit audit --report`. Pure.

The fourteen fields are those that auditors ask for of each action of an agent. Of the AI Act (Regulation (EU)
2024/1689) and of ISO/IEC 42001 here stand the clauses that a record can answer; whether a system falls under them is
not for a record to say.
"""

from __future__ import annotations

from typing import Final, NamedTuple

FOURTEEN: Final = "Fourteen fields"
AI_ACT: Final = "AI Act"
ISO: Final = "ISO/IEC 42001"


class Duty(NamedTuple):
    """One duty, or one field."""

    source: str
    clause: str
    duty: str
    kinds: tuple[str, ...]
    """The kinds of events that answer it; empty: every kind does."""
    every: tuple[str, ...] = ()
    """Fields, as `kind.field`, that each event of the kind should have."""
    some: tuple[str, ...] = ()
    """Fields that only some events have, which are counted."""
    gap: str = ""
    """The part that is not recorded, or only partly, whatever the journal holds."""


_CALL: Final = "tool_invocation_started"
_END: Final = "tool_invocation_finished"
_ANSWER: Final = "confirmation_decided"
_DRIFTS: Final = ("version_mismatch_recorded", "schema_drift_recorded", "model_drift_recorded")

DUTIES: Final = (
    Duty(
        FOURTEEN, "1", "Deployment", ("recorder_opened",),
        gap="Only a recorder names the deployment, the release and the settings.",
    ),
    Duty(
        FOURTEEN, "2", "Identity of the agent", ("job_created", "session_opened"),
        ("job_created.principal", "job_created.execution_version"), ("session_opened.client",),
        gap="The name of a client is its own word; an agent has no identifier that outlives its jobs.",
    ),
    Duty(FOURTEEN, "3", "Session", ("session_opened", "call_opened", "job_created")),
    Duty(
        FOURTEEN, "4", "Time", (),
        gap="Times are of the clock of the machine that recorded them.",
    ),
    Duty(
        FOURTEEN, "5", "Prompt", ("command_started",), ("command_started.prompt_hash",),
        gap="The bytes that were sent are recorded by digest alone.",
    ),
    Duty(
        FOURTEEN, "6", "Retrieved context and its origin", ("evidence_attached", _END), (),
        (f"{_CALL}.output_trusted", f"{_CALL}.untrusted_input"),
    ),
    Duty(FOURTEEN, "7", "Output of the model", ("command_committed",), (), ("command_committed.response_id",)),
    Duty(FOURTEEN, "8", "Planned action", ("plan_generated", "command_committed"), (), (f"{_CALL}.call_id",)),
    Duty(
        FOURTEEN, "9", "Class of the action", (_CALL, "gate_refused"), (f"{_CALL}.risk_level",),
        ("gate_refused.risk_level",), gap="A refused call of a tool that does not exist has no class.",
    ),
    Duty(
        FOURTEEN, "10", "Reference of the approval", (_ANSWER,), (f"{_ANSWER}.digest",),
        (f"{_ANSWER}.proof", f"{_ANSWER}.signature", f"{_CALL}.confirmation"),
        gap="Without proof the name of the person is a claim.",
    ),
    Duty(
        FOURTEEN, "11", "Executed action", (_END,), (f"{_CALL}.request_schema_hash",),
        gap="A value is recorded as it was understood, not as the bytes that went over the wire.",
    ),
    Duty(
        FOURTEEN, "12", "Chain of the calls", (_CALL,), (f"{_CALL}.span_id",),
        gap="Between streams only the position in the journal says what came first.",
    ),
    Duty(FOURTEEN, "13", "Where the output went", ("session_opened", "output_read"), (), ("session_opened.client",)),
    Duty(FOURTEEN, "14", "Version of the policy", (_CALL,), (f"{_CALL}.policy_hash", f"{_CALL}.policy_kept")),
    Duty(
        AI_ACT, "12(1)", "Events are recorded automatically over the lifetime", (),
        gap="A change of settings, local tools or prices is recorded when a worker or a recorder starts, not before.",
    ),
    Duty(AI_ACT, "12(2)(a)", "Situations of risk, and modifications", ("gate_refused", "job_failed", *_DRIFTS)),
    Duty(AI_ACT, "12(2)(b)", "Post-market monitoring", (_END, "command_committed")),
    Duty(AI_ACT, "12(2)(c)", "Monitoring of the operation", ("worker_started", "recovery_started", "output_read")),
    Duty(AI_ACT, "14(1)", "People oversee the system", ("confirmation_requested", _ANSWER), (f"{_ANSWER}.digest",)),
    Duty(AI_ACT, "14(4)(d)", "People override or reverse", (_ANSWER, "step_decided", "step_compensated")),
    Duty(AI_ACT, "14(4)(e)", "People stop the system", ("cancel_requested", "job_cancelled")),
    Duty(
        AI_ACT, "26(2)", "The people have competence and authority", (_ANSWER,), (f"{_ANSWER}.proof",),
        (f"{_ANSWER}.signature",), gap="Who may approve stands in the policy; whether they are competent, nowhere.",
    ),
    Duty(AI_ACT, "26(5)", "The deployer monitors, and informs", ("notification_sent", "output_read")),
    Duty(ISO, "A.6.2.6", "Operation and monitoring", (_END, "job_failed", "recovery_started", *_DRIFTS)),
    Duty(ISO, "A.6.2.8", "Event logs", ()),
)  # fmt: skip
"""Every duty, by source. Articles 19 and 26(6), how long logs are kept, are answered by the retention in force."""
