"""The wires of models' providers, passed on as they come: governed, recorded and replayable, for any program."""

from __future__ import annotations

from typing import Final

from remit.capability import Capability, Command, kinds_of

CAPABILITIES: Final = (
    Capability(
        name="model_gateway",
        about="The wires of models' providers, for unchanged programs.",
        settings="remit.parts.model_gateway.settings:ModelGatewaySettings",
        providers="remit.parts.model_gateway.provider:open_programs",
        provider_ids=("program",),
        fronts="remit.parts.model_gateway.front:open_front",
        recipes=("remit.parts.model_gateway.programs:recorded_program",),
        inner_recipes=("recorded_program",),
        serves="remit.parts.model_gateway.wiring:open_mounts",
        rereads="remit.parts.model_gateway.reread:reread",
        replays="remit.parts.model_gateway.commands:replay_program",
        commands=(
            Command(
                word="record",
                section="Run",
                about="Run a program, and record its model calls, whatever made it.",
                command="remit.parts.model_gateway.commands:command",
            ),
            Command(
                word="model-gateway",
                about="Serve the wires of models' providers alone: /openai, /anthropic and /gemini.",
                command="remit.parts.model_gateway.commands:serve_command",
            ),
        ),
        kinds=kinds_of("remit.parts.model_gateway.kinds", "model_gateway", "asked answered claimed tried"),
        modules=("aiohttp", "uvicorn"),
        extra="models",
    ),
)
