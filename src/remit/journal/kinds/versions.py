"""Events that say what changed between the recording and now."""

from __future__ import annotations

from typing import ClassVar, Literal

from remit.journal.kinds.payload import Payload


class PatchRecorded(Payload, frozen=True, kw_only=True):
    """Ours: the recipe came to a change of its code, `run.patched(name)`, with nothing recorded after it."""

    KIND: ClassVar[str] = "patch_recorded"
    name: str
    """The change: the job takes the new way wherever the recipe asks for it."""


class VersionMismatchRecorded(Payload, frozen=True, kw_only=True):
    """The job goes on under other code than recorded it."""

    KIND: ClassVar[str] = "version_mismatch_recorded"
    subject: Literal["execution", "planner", "recipe", "registry", "tool", "provider", "skill"]
    recorded: str
    current: str
    policy: str
    tool_name: str = ""
    """The tool, if it is about one."""


class SchemaDriftRecorded(Payload, frozen=True, kw_only=True):
    """A tool's contract is not the one the job was recorded with."""

    KIND: ClassVar[str] = "schema_drift_recorded"
    tool_name: str
    recorded: str
    current: str
    drift: str = ""
    policy: str = "warn"
    direction: Literal["request", "response"] = "request"
    """Which schema changed: the input's or the output's."""


class ModelDriftRecorded(Payload, frozen=True, kw_only=True):
    """The same prompt meets another model, or brought another answer."""

    KIND: ClassVar[str] = "model_drift_recorded"
    step: str
    prompt_hash: str
    subject: Literal["model", "output"]
    recorded: str
    """The model as `provider/model`, or the digest of the answer: empty in a stream about a subject."""
    current: str
    """The same, now."""
    policy: str = "warn"
