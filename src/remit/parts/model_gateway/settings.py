"""Settings of the model gateway."""

from typing import Annotated, Final, Literal

from remit.settings.section import About, Bytes, Section

NAME: Final = "model_gateway"
"""Of the part, and of its table."""


class ModelGatewaySettings(Section, frozen=True):
    """The wires of models' providers, for unchanged programs."""

    serve: Annotated[
        bool, About("Whether `remit serve` answers at /openai, /anthropic and /gemini, to clients with scope call.")
    ] = True
    programs: Annotated[
        bool,
        About("Whether program.run is a tool, which runs programs with your rights; `remit record` has it anyway."),
    ] = False
    executors: Annotated[
        bool, About("Whether the models of `remit work`'s coding agents are asked through the gate.")
    ] = True
    unread: Annotated[
        Literal["pass", "refuse"],
        About("What becomes of a request that cannot be read: passed and recorded as bytes, or refused."),
    ] = "pass"
    stop_upstream: Annotated[
        bool, About("Whether an answer is cut off at its provider when the program that asked for it is gone.")
    ] = False
    request_bytes: Annotated[Bytes, About("The largest request; a larger one is refused.")] = 64 * 1024 * 1024
    keep_bytes: Annotated[
        Bytes, About("Bytes that are kept of an answer; what is longer is passed on all the same.")
    ] = 16 * 1024 * 1024
