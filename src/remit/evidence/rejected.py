"""The reasons for which a package is not accepted, as codes that programs read."""

from __future__ import annotations


class RejectedError(Exception):
    """The package is no evidence: a code of `REASONS`, and a sentence that says where it fails."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


REASONS = {
    "container_invalid": "It is not a zip as Remit writes it: a link, bytes between files, another name.",
    "json_invalid": "A line or a file is not strict JSON.",
    "manifest_schema_invalid": "manifest.json is missing, of another format, or lacks a member.",
    "manifest_self_integrity_failed": "manifest.json does not match its own hash.",
    "duplicate_artifact_path": "manifest.json names a file twice, or the zip holds one twice.",
    "duplicate_check_name": "manifest.json names a check twice.",
    "details_ref_not_listed": "A check refers to a file that manifest.json does not name.",
    "artifact_missing": "A file that manifest.json names is not there, or one is there that it does not name.",
    "artifact_sha_mismatch": "A file has another size or SHA-256 than manifest.json says.",
    "chain_broken": "An event does not follow the one before it, or a stream ends elsewhere.",
    "event_contradicted": "An event does not fit the facts that it follows from.",
    "ledger_mismatch": "The ledger, or the list of calls without an outcome, is not what the events say.",
    "value_invalid": "A value is not the one that an event names, or is gone without a reason.",
    "checkpoint_mismatch": "A signed checkpoint is of another record, or a proof does not lead to it.",
    "checkpoint_unproven": "None of the keys that you gave signed a checkpoint in it.",
    "checkpoint_partial": "`undecidable`: some events are under no checkpoint that a key of yours signed.",
    "format_newer": "`undecidable`: a newer Remit made it; take verify.py from one.",
    "form_invalid": "Something else does not have the form of a package.",
}
