"""Audit: evidence packages of what was recorded."""

from __future__ import annotations

from typing import Final

from remit.capability import Capability, Command, Noun

CAPABILITIES: Final = (
    Capability(
        name="audit",
        about="Evidence of what was recorded, for people who trust no one.",
        nouns=(
            Noun(
                name="audit",
                kind="remit.parts.audit.noun:Audit",
                open="remit.parts.audit.noun:open_audit",
                remote="remit.parts.audit.remote:RemoteAudit",
            ),
        ),
        routes="remit.parts.audit.routes:ROUTES",
        pages="remit.parts.audit.pages:PAGES",
        settings="remit.parts.audit.settings:AuditSettings",
        kinds={"output_read": "remit.parts.audit.kinds:OutputRead"},
        reads="remit.parts.audit.read_recorder:open_reader",
        formats="remit.parts.audit.formats.catalog:check",
        works="remit.parts.audit.anchoring.wiring:work_on_anchors",
        checks="remit.parts.audit.noun:check_audit",
        commands=(
            Command(
                word="export",
                section="Look",
                about="Export the evidence of a job: everything recorded, in a zip that anyone can check.",
                command="remit.parts.audit.commands.export:command",
            ),
            Command(
                word="audit",
                section="Look",
                about="Say who did, allowed and refused what, in which versions, and what is not known.",
                command="remit.parts.audit.commands.audit:command",
            ),
        ),
    ),
    Capability(
        name="telemetry",
        about="Send spans of calls, models and jobs, and metrics, to an OpenTelemetry collector.",
        settings="remit.parts.audit.telemetry.settings:TelemetrySettings",
        kinds={"telemetry_begun": "remit.parts.audit.kinds:TelemetryBegun"},
        sends="remit.parts.audit.telemetry.wiring:send_beside",
        checks="remit.parts.audit.telemetry.wiring:check_telemetry",
    ),
)
