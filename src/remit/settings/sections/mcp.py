"""The section `[mcp]`."""

from typing import Annotated, Literal

import msgspec

from remit.settings import pictures
from remit.settings.file import Base
from remit.settings.section import About, Bytes, Millis, Section, Tables, Texts


def _path(path: str, base: Base) -> str:
    return str(base.path(path)) if path else ""


class McpSettings(Section, frozen=True):
    """MCP servers whose tools are used, and MCP clients that may use yours."""

    servers: Annotated[
        Tables,
        About(
            "The servers, one `[[mcp.servers]]` table each, as explained below. A JSON array in the environment.",
            picture=pictures.servers,
            entry="remit.settings.mcp:McpServerTable",
        ),
    ] = ()
    timeout_ms: Annotated[
        Millis,
        About(
            "Milliseconds that a call of a server's tool may take, if the server sets no limit of its own.",
            env=("MCP_TIMEOUT_MS",),
        ),
    ] = 30_000
    grace_ms: Annotated[
        int,
        msgspec.Meta(ge=1, le=600_000),
        About(
            "Milliseconds that a server on stdio has to end by itself once its input is closed, and again after "
            "SIGTERM, before it is killed; if the server sets none of its own."
        ),
    ] = 2_000
    drain_ms: Annotated[
        int,
        msgspec.Meta(ge=0, le=86_400_000),
        About(
            "Milliseconds after the last answer, or after servers have started, for which Remit still works on what "
            "a client on stdio asked before it closed its output."
        ),
    ] = 800
    first_use: Annotated[
        Literal["trust", "refuse"],
        About(
            "Whether tools of a server that was never pinned may be used. With trust, Remit pins the server's "
            "first list; with refuse, nothing runs before `remit mcp pin`."
        ),
    ] = "trust"
    pins_file: Annotated[
        str,
        About(
            "A file with pinned tools, as `remit mcp pin --export` writes it. With `tools.no_mcp`, stubs stand in for "
            "them where the journal has no pin of the server.",
            resolve=_path,
        ),
    ] = ""
    elicitation: Annotated[
        Literal["decline", "defaults", "forward"],
        About(
            "How to answer a server's question: decline; defaults, the default values of its schema if all "
            "required ones have them; or forward, ask the MCP client that made the call, and decline if none did."
        ),
    ] = "decline"
    sampling: Annotated[
        Literal["refuse", "forward"],
        About("Whether a server may use a model: refuse, or forward to the MCP client that made the call."),
    ] = "refuse"
    ask: Annotated[
        Literal["client", "terminal", "both"],
        About(
            "Where a person is asked about a client's call: client, in its dialog if it has one; terminal, only "
            "elsewhere, as with `remit confirm`; or both: the first answer counts and closes the other."
        ),
    ] = "both"
    patience: Annotated[
        int,
        msgspec.Meta(ge=0, le=86_400),
        About(
            "Seconds that a call waits for its dialog before it is answered that it waits; the question stays open. "
            "0: as long as it takes. By default, clients whose dialog stops their clock (Claude Code, Codex) wait "
            "as long as it takes."
        ),
    ] = 50
    waiting: Annotated[
        Literal["error", "result"],
        About(
            "How a call that waits for a person is answered: error, as a failed call; or result, as one that did not "
            "fail, for clients that end their run at an error. A tool with an output schema always answers an error."
        ),
    ] = "error"
    person_ms: Annotated[
        int,
        msgspec.Meta(ge=0, le=86_400_000),
        About(
            "Milliseconds that a person takes at least to decline. A client that declines sooner does so by itself: "
            "the question stays open."
        ),
    ] = 500
    expose_tools: Annotated[
        Literal["all", "search"],
        About(
            "How a client comes to its tools: all, each in its list; or search, by two tools in its list that find "
            "and call the others, so that hundreds of tools cost its model few tokens."
        ),
    ] = "all"
    always: Annotated[
        Texts,
        About("Tools that stay in the list beside these two: names, or patterns such as `fs.*`."),
    ] = ()
    instructions: Annotated[
        int,
        msgspec.Meta(ge=0, le=1_000_000),
        About(
            "Characters of each server's instructions that clients of `serve` are told, under a heading for each "
            "server. 0: none."
        ),
    ] = 2_000
    max_message_bytes: Annotated[Bytes, About("The largest message accepted from a server.")] = 64 * 1024 * 1024
    log_bytes: Annotated[
        int,
        msgspec.Meta(ge=0, le=1_000_000_000),
        About("The most that `remit mcp logs` keeps of what a server writes to stderr. 0: nothing."),
    ] = 1_048_576
    expose: Annotated[
        Texts,
        About("Recipes to offer to MCP clients as tools: names, or patterns such as `report_*`."),
    ] = ()
    untrusted_input: Annotated[
        Texts,
        About("Which of these recipes get untrusted text from clients, as from a chat that anyone may write in."),
    ] = ()
    run: Annotated[
        str,
        About("The stream of the recorded program whose agent is the client, as `remit record --governed` says it."),
    ] = ""
    replays: Annotated[
        str,
        About(
            "The stream of a job whose recorded outcomes answer calls, as `remit replay --results governed` says it."
        ),
    ] = ""
    clients: Annotated[
        Tables,
        About(
            "Deprecated: use `[[clients]]` tables. These are still read, with the same rights as before.",
            picture=pictures.clients,
        ),
    ] = ()
    servers_json: Annotated[
        str,
        About(
            "For the environment: more servers, as a JSON array of `{name, cmd, args, cwd}`, also with `env`, "
            "`url` and `headers`. It overrides the names below.",
            env=("MCP_SERVERS_JSON",),
            picture=pictures.servers_json,
        ),
    ] = ""
    server_name: Annotated[
        str, About("For the environment: the name of a single server.", env=("MCP_SERVER_NAME",))
    ] = ""
    server_cmd: Annotated[
        str,
        About(
            "For the environment: the program of the single server.", env=("MCP_SERVER_CMD",), picture=pictures.command
        ),
    ] = ""
    server_args_json: Annotated[
        str,
        About(
            "For the environment: its arguments, as a JSON array. It overrides the next name.",
            env=("MCP_SERVER_ARGS_JSON",),
            picture=pictures.hidden,
        ),
    ] = ""
    server_args: Annotated[
        str,
        About(
            "For the environment: its arguments, split as a shell would split them; no shell runs.",
            env=("MCP_SERVER_ARGS",),
            picture=pictures.hidden,
        ),
    ] = ""
    server_cwd: Annotated[
        str,
        About(
            "For the environment: the folder in which the single server starts. Empty: its own folder.",
            env=("MCP_SERVER_CWD",),
        ),
    ] = ""
