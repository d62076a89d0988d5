"""A recorder that signs what the journal says while it is said, and a witness that holds what was signed."""

from __future__ import annotations

from typing import Final

from remit.capability import Capability, Command, kinds_of

CAPABILITIES: Final = (
    Capability(
        name="recorder",
        about="Sign what is recorded while it is recorded, and hold what was signed as a witness.",
        settings="remit.parts.recorder.settings:RecorderSettings",
        kinds=kinds_of("remit.parts.recorder.kinds", "recorder", "opened checkpoint closed"),
        works="remit.parts.recorder.wiring:work_on_checkpoints",
        commands=(
            Command(
                word="recorder",
                about="Sign what is recorded: the key, and checkpoints.",
                command="remit.parts.recorder.commands:command",
            ),
            Command(
                word="witness",
                about="Hold the checkpoints of journals, and refuse what does not continue them.",
                command="remit.parts.recorder.commands:witness_command",
            ),
        ),
        verifies="remit.parts.recorder.wiring:open_verifier",
        checks="remit.parts.recorder.wiring:check_recorder",
        modules=("cryptography",),
        extra="audit",
    ),
)
