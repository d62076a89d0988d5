"""The section `[tools]`."""

from typing import Annotated, Literal

from remit.settings.section import About, Bytes, Section, Texts


class ToolSettings(Section, frozen=True):
    """Which tools there are and how strictly they are held to their schemas."""

    preferred_provider_order: Annotated[
        Texts,
        About("If several providers offer a name, the first match in this list serves it; `*` matches any ending."),
    ] = ("builtin", "mcp_*", "web", "stub")
    choose: Annotated[
        Literal["order", "safest"],
        About("How to choose between several providers of a name: by that order, or the tool with the lowest level."),
    ] = "order"
    schema_gate: Annotated[
        Literal["strict", "warn", "off"],
        About(
            "What becomes of a value that breaks its tool's schema: refused, reported, or not looked at.",
            env=("SCHEMA_GATE_MODE",),
        ),
    ] = "strict"
    only: Annotated[
        Texts,
        About(
            "The parts of Remit whose tools there are, such as `mcp` or `fs`, as `remit parts` names them; "
            "empty: all. Modules and programs bring theirs all the same."
        ),
    ] = ()
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
            "Tools whose results are trusted although they read from outside, such as `mcp.calendar.*`, unless "
            "untrusted values went in; `*` matches any characters."
        ),
    ] = ()
    always_trusted_output: Annotated[
        Texts,
        About("Tools whose results are trusted whatever went in, because they hold only what a source of yours says."),
    ] = ()
    untrusted_output: Annotated[
        Texts,
        About("Tools whose results are not trusted, whatever else says so."),
    ] = ()
    max_value_bytes: Annotated[
        Bytes,
        About("The largest result of a tool, as JSON; the call fails if it is larger."),
    ] = 16 * 1024 * 1024
