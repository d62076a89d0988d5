"""The promises of every model behind the port, as checks that any test suite can run.

    @pytest.mark.parametrize("check", MODEL_CHECKS, ids=lambda check: check.__name__)
    async def test_contract(check):
        await check(Subject(my_model_at, ChatSpeech()))

Each check serves a wire on loopback, well or badly, and asks a model of its own.
"""

from __future__ import annotations

from remit_testing.models.anthropic import AnthropicSpeech
from remit_testing.models.checks import KEY, MODEL_CHECKS, Subject
from remit_testing.models.gemini import GeminiSpeech
from remit_testing.models.openai_chat import ChatSpeech
from remit_testing.models.openai_responses import ResponsesSpeech
from remit_testing.models.scene import Canned, Scene, SceneCall, Speech
from remit_testing.models.server import ModelServer, Received, Streamed

__all__ = [
    "KEY",
    "MODEL_CHECKS",
    "AnthropicSpeech",
    "Canned",
    "ChatSpeech",
    "GeminiSpeech",
    "ModelServer",
    "Received",
    "ResponsesSpeech",
    "Scene",
    "SceneCall",
    "Speech",
    "Streamed",
    "Subject",
]
