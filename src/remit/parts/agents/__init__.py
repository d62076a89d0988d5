"""Agents: a model that calls tools until it has answered, as part of a durable run."""

from __future__ import annotations

from typing import Final

from remit.capability import Capability, Command, Noun

CAPABILITIES: Final = (
    Capability(
        name="agents",
        about="Agents: a model that works with tools until it is done.",
        recipes=(
            "remit.parts.agents.recipes:agent",
            "remit.parts.agents.recipes:ask_model",
            "remit.parts.agents.recipes:conversation",
        ),
        nouns=(
            Noun(
                name="conversations",
                kind="remit.parts.agents.conversations:Conversations",
                open="remit.parts.agents.conversations:open_conversations",
                remote="remit.parts.agents.remote:RemoteConversations",
            ),
        ),
        routes="remit.parts.agents.routes:ROUTES",
        commands=(
            Command(
                word="chat",
                section="Run",
                about="Continue an agent's conversation, or show it.",
                command="remit.parts.agents.commands:chat_command",
            ),
            Command(
                word="conversation",
                section="Run",
                about="Export and import agents' conversations, in OpenAI's message format.",
                command="remit.parts.agents.commands:conversation_command",
            ),
        ),
        pages="remit.parts.agents.pages:PAGES",
        modules=("aiohttp",),
        extra="models",
    ),
)
