"""The section `[tools]`."""

from __future__ import annotations

from typing import Annotated, Literal

from remit.settings.section import About, Bytes, Section, Texts


class ToolSettings(Section, frozen=True):
    """Which tools there are and how strictly they are held to their schemas."""

    preferred_provider_order: Annotated[
        Texts,
        About("Which provider serves a name that several offer: the first that matches; `*` stands for any ending."),
    ] = ("builtin", "mcp_*", "stub")
    choose: Annotated[
        Literal["order", "safest"],
        About("How to choose between several providers of a name: by that order, or the tool that can do least."),
    ] = "order"
    schema_gate: Annotated[
        Literal["strict", "warn", "off"],
        About(
            "What becomes of a value that breaks its tool's schema: refused, reported, or not looked at.",
            env=("SCHEMA_GATE_MODE",),
        ),
    ] = "strict"
    no_mcp: Annotated[
        bool,
        About(
            "Whether to do without MCP servers. Their pinned tools are answered by stand-ins that touch nothing and "
            "say the same to the same arguments; other tools of theirs are refused.",
            env=("NO_MCP",),
        ),
    ] = False
    unprotected: Annotated[
        Texts,
        About(
            "`@tool` functions of level L2 that may run in this process, without isolation; `*` stands for any ending."
        ),
    ] = ()
    trusted_output: Annotated[
        Texts,
        About(
            "Tools whose results count as trusted though they read from outside, such as `mcp.calendar.*`; `*` stands "
            "for any characters."
        ),
    ] = ()
    untrusted_output: Annotated[
        Texts,
        About("Tools whose results do not count as trusted, whatever else is said of them."),
    ] = ()
    max_value_bytes: Annotated[
        Bytes,
        About("The largest result of a tool, as JSON; a larger one is a failure."),
    ] = 16 * 1024 * 1024
