"""Runs programs where they can do no harm (rule 9). Knows no tools and no journal: a floor below the providers.

A *driver* isolates: it says what this machine lets it do (`probe`), runs one command (`exec`) and stops it (`kill`).
Where no driver reaches the isolation that the policy demands, nothing runs: SANDBOX_UNAVAILABLE names the check that
failed and what to do about it. There is no fallback and nothing that a caller could set to get one.

This is not a boundary against a flaw in the kernel: against that, choose the driver `container` with gVisor's
runtime, or a virtual machine around all of Remit.
"""

from __future__ import annotations

from typing import Final

from remit.capability import Capability, Command

CAPABILITIES: Final = (
    Capability(
        name="sandbox",
        about="Run programs where they can do no harm.",
        settings="remit.parts.sandbox.settings:SandboxSettings",
        providers="remit.parts.sandbox.provider:open_sandbox_tools",
        provider_ids=("sandbox",),
        tools=True,
        offers="remit.parts.sandbox.settings:offered",
        encloses="remit.parts.sandbox.wiring:open_enclosures",
        recipes=("remit.parts.sandbox.recipe:run_code_snippet",),
        commands=(
            Command("sandbox", "Check the sandbox, and manage its workspaces.", "remit.parts.sandbox.cli:command"),
        ),
        checks="remit.parts.sandbox.checks:check_sandbox",
    ),
)
