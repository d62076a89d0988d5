"""The guard before an agent's own tools: agents call hooks, and the gate answers them.

client (C)     what an agent starts for each hook: it asks the guard, and ends with 2 on every failure
hook.py        one message of an agent, in one language for six of them; the answer in the agent's own
provider.py    the agents' tools: the gate decides, the agent makes the call, the after-hook ends it
guard.py       sessions and calls under way
serving.py     `remit guard serve`, a socket of the user's own
places.py      the files by which an agent is told to ask, and what to write there
"""

from __future__ import annotations

from typing import Final

from remit.capability import Capability, Command

CAPABILITIES: Final = (
    Capability(
        name="hooks",
        about="The gate before an agent's own tools, which ask it by hooks.",
        settings="remit.parts.hooks.settings:HookSettings",
        unlisted="remit.parts.hooks.hook:agents_tools",
        checks="remit.parts.hooks.checks:check_agents",
        kinds={"hooks_call_ungated": "remit.parts.hooks.kinds:HooksCallUngated"},
        commands=(
            Command(
                word="guard",
                about="Put the gate before an agent's own tools: its shell, edits and fetches.",
                command="remit.parts.hooks.commands:command",
            ),
        ),
    ),
)
