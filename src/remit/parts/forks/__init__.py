"""Forks: a job run again from a step, with something changed; and two runs laid beside each other."""

from __future__ import annotations

from typing import Final

from remit.capability import Capability, Command, Noun

CAPABILITIES: Final = (
    Capability(
        name="forks",
        about="Run a job again from a step with something changed, and compare two runs.",
        nouns=(Noun(name="forks", kind="remit.parts.forks.forks:Forks", open="remit.parts.forks.forks:open_forks"),),
        commands=(
            Command(
                word="fork",
                section="Run",
                about="Run a job again from a step, with something changed.",
                command="remit.parts.forks.commands:fork_command",
            ),
            Command(
                word="diff",
                section="Look",
                about="Compare two runs step by step.",
                command="remit.parts.forks.commands:diff_command",
            ),
        ),
        pages="remit.parts.forks.pages:PAGES",
    ),
)
