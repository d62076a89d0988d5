"""Work: issues that are handed to executors, and the results that are taken back (contract: executors)."""

from __future__ import annotations

from typing import Final

from remit.capability import Capability, Command, Noun, kinds_of

CAPABILITIES: Final = (
    Capability(
        name="work",
        about="Hand issues to executors, and take back what is proved.",
        files={"workflow.toml": "remit.parts.work.workflow:WorkflowFile"},
        providers="remit.parts.work.providers:open_providers",
        provider_ids=("outbox", "decision", "work"),
        recipes=("remit.parts.work.recipe:work_run", "remit.parts.work.decisions:work_decision"),
        inner_recipes=("work_run", "work_decision"),
        nouns=(Noun(name="work", kind="remit.parts.work.noun:WorkNoun", open="remit.parts.work.wiring:open_work"),),
        kinds={
            **kinds_of("remit.parts.work.kinds", "work", "opened run_started run_stopped written moved controlled"),
            **kinds_of("remit.parts.work.kinds", "work_result", "accepted refused discarded"),
            **kinds_of("remit.parts.work.kinds", "issue", "opened commented changed"),
            **kinds_of("remit.parts.work.kinds", "outbox", "opened announced confirmed"),
        },
        works="remit.parts.work.control:work_on_issues",
        checks="remit.parts.work.folder:check_work",
        commands=(
            Command(
                word="work",
                section="Work",
                about="Hand issues to coding agents, scripts and people, and take back only what is proved.",
                command="remit.parts.work.commands:command",
            ),
        ),
        pages="remit.parts.work.pages:PAGES",
    ),
)
