"""A model that says what a file tells it to: for tests, demonstrations, and work without a network.

    - say: Let me look.            # text; or nothing
      call:                        # calls; or nothing
        - {tool: fs.read, args: {path: notes.txt}}
    - expect: "done|ready"         # pattern that the newest message has to hold
      say: All done.
    - fault: busy                  # gives no reply at the first attempt; `times: 2` gives none at the second either
      after: 2                     # seconds it wants to be left alone

Which step answers follows from the prompt: the first prompt that holds two answers is met by the third step, in any
process; which of its faults comes first follows from the attempt. A prompt that the script does not expect is refused,
and `check_used` complains of steps that were not used.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import yaml

from remit.errors import UsageError
from remit.models.faults import FAULTS, Rejected
from remit.models.message import Block, Message, Text, ToolCall, ToolMessage
from remit.models.port import Sending
from remit.models.reply import Delta, ModelReply, TokenUsage, Watch
from remit.regex import regex

if TYPE_CHECKING:
    from remit.models.names import ModelName
    from remit.models.prompt import Ask

_MAX_BYTES: Final = 4 * 1024 * 1024
_PIECES: Final = regex(r"\S+\s*|\s+")
_CHARACTERS_PER_TOKEN: Final = 4


class ScriptedCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call the script makes."""

    tool: str
    """Full name, or the name as models see it."""
    args: dict[str, Any] = msgspec.field(default_factory=dict)


class ScriptStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One answer, or one fault."""

    say: str = ""
    call: tuple[ScriptedCall, ...] = ()
    expect: str = ""
    fault: str = ""
    after: float | None = None
    times: int = 1


class ScriptedModel:
    """A model made of steps (`remit.models.port.Model`)."""

    def __init__(self, name: ModelName, steps: tuple[ScriptStep, ...]) -> None:
        self._name = name
        self._answers: list[ScriptStep] = []
        self._faults: list[list[ScriptStep]] = [[]]
        for step in steps:
            _check(step)
            if step.fault:
                self._faults[-1] += [step] * step.times
            else:
                self._answers.append(step)
                self._faults.append([])
        self._used = 0
        self._attempts: dict[int, int] = {}
        """The number of faults of each step that were given."""

    @property
    def name(self) -> ModelName:
        return self._name

    def prepare(self, ask: Ask) -> Sending:
        body = msgspec.json.encode({"prompt": ask.prompt, "messages": ask.messages})
        return Sending(ask=ask, api="scripted/1", path="", body=body)

    async def send(self, sending: Sending, watch: Watch) -> ModelReply:
        ask = sending.ask
        turn = ask.turn
        faults = self._faults[turn] if turn < len(self._faults) else []
        if ask.attempt <= len(faults):
            fault = faults[ask.attempt - 1]
            self._attempts[turn] = max(self._attempts.get(turn, 0), ask.attempt)
            raise FAULTS[fault.fault](f"the script gives {fault.fault}", after_s=fault.after)
        if turn >= len(self._answers):
            raise Rejected(f"the script ends after {len(self._answers)} answers and was asked for one more")
        step = self._answers[turn]
        if step.expect and not re.search(step.expect, _newest(ask)):
            raise Rejected(f"answer {turn + 1} of the script expects {step.expect!r}, and the newest message differs")
        self._used = max(self._used, turn + 1)
        return self._reply(step, ask, watch)

    def check_used(self) -> None:
        """Raise AssertionError if the script holds steps that were never used."""
        faults = sum(map(len, self._faults)) - sum(self._attempts.values())
        left = len(self._answers) - self._used + faults
        if left:
            raise AssertionError(f"{left} steps of the script were not used")

    async def close(self) -> None:
        """Nothing is open."""

    def _reply(self, step: ScriptStep, ask: Ask, watch: Watch) -> ModelReply:
        for piece in _PIECES.findall(step.say):
            watch(Delta("text", piece))
        blocks: list[Block] = [Text(step.say)] if step.say else []
        for number, call in enumerate(step.call):
            arguments = msgspec.json.encode(call.args).decode()
            watch(Delta("call", arguments))
            name = call.tool.replace(".", "__")
            blocks.append(ToolCall(f"{ask.id}-{number}", name, arguments, f"call_{number}"))
        characters = len(step.say) + sum(len(block.arguments) for block in blocks if isinstance(block, ToolCall))
        usage = TokenUsage(
            input=ask.thread.size // _CHARACTERS_PER_TOKEN + 1, output=characters // _CHARACTERS_PER_TOKEN + 1
        )
        reply = ModelReply(
            message=Message("assistant", tuple(blocks), self._name.producer),
            stop="tools" if step.call else "answer",
            usage=usage,
            usage_raw=msgspec.to_builtins(usage),
            model=self._name.model,
            first_us=0,
        )
        return reply.checked()


def load(name: ModelName, folder: Path) -> ScriptedModel:
    """The model of a script, a YAML or JSON file named from `folder`. Raises UsageError."""
    path = folder / name.model
    try:
        with path.open("rb") as file:
            document = yaml.safe_load(file.read(_MAX_BYTES))
        return ScriptedModel(name, msgspec.convert(document, tuple[ScriptStep, ...]))
    except OSError as error:
        raise UsageError(f"the script {path} cannot be read: {error.strerror}", remedy="Name another file.") from error
    except (yaml.YAMLError, msgspec.ValidationError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"the script {path} is not one: {error}", remedy="docs/models.md shows its form.") from error


def _check(step: ScriptStep) -> None:
    if step.fault and step.fault not in FAULTS:
        raise UsageError(f"{step.fault!r} is not a fault", remedy=f"Use {', '.join(FAULTS)}.")
    try:
        re.compile(step.expect)
    except re.error as error:
        raise UsageError(f"the pattern {step.expect!r} cannot be read: {error}", remedy="Fix the script.") from error


def _newest(ask: Ask) -> str:
    message = ask.thread.message
    if message is None:
        return ""
    texts = [block.text for block in message.blocks if isinstance(block, ToolMessage)]
    return message.text + "\n".join(texts)
