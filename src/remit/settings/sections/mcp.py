"""The section `[mcp]`."""

from __future__ import annotations

from typing import Annotated, Literal

from remit.settings import pictures
from remit.settings.section import About, Bytes, Millis, Section, Tables, Texts


class McpSettings(Section, frozen=True):
    """MCP servers whose tools are used, and MCP clients that may use yours."""

    servers: Annotated[
        Tables,
        About(
            "The servers, one `[[mcp.servers]]` table each, as explained below. A JSON array in the environment.",
            picture=pictures.servers,
        ),
    ] = ()
    timeout_ms: Annotated[
        Millis,
        About("How long a call of a server's tool may take, where the server has no limit.", env=("MCP_TIMEOUT_MS",)),
    ] = 30_000
    first_use: Annotated[
        Literal["trust", "refuse"],
        About(
            "Whether tools of a server that was never pinned may be used. With trust, what it lists first is pinned; "
            "with refuse, nothing is used before `remit mcp pin`."
        ),
    ] = "trust"
    elicitation: Annotated[
        Literal["decline", "defaults", "forward"],
        About(
            "What a server's question is answered with: a refusal, the defaults that its schema names, where it names "
            "all that is required, or what the MCP client says that made the call (a refusal where none did)."
        ),
    ] = "decline"
    sampling: Annotated[
        Literal["refuse", "forward"],
        About("Whether a server may ask for a model: never, or that of the MCP client that made the call."),
    ] = "refuse"
    max_message_bytes: Annotated[Bytes, About("The largest message taken from a server.")] = 64 * 1024 * 1024
    expose: Annotated[
        Texts,
        About("Recipes that MCP clients are offered as tools: names, or patterns such as `report_*`."),
    ] = ()
    clients: Annotated[
        Tables,
        About(
            "Deprecated: write `[[clients]]` tables. These are still read, and may do what they could.",
            picture=pictures.clients,
        ),
    ] = ()
    servers_json: Annotated[
        str,
        About(
            "For the environment: more servers, as a JSON array of `{name, cmd, args, cwd}`, also with `env`, `url` "
            "and `headers`. It wins over the names below.",
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
            "For the environment: its arguments, as a JSON array. It wins over the next name.",
            env=("MCP_SERVER_ARGS_JSON",),
            picture=pictures.hidden,
        ),
    ] = ""
    server_args: Annotated[
        str,
        About(
            "For the environment: its arguments, split as a shell would; no shell ever sees them.",
            env=("MCP_SERVER_ARGS",),
            picture=pictures.hidden,
        ),
    ] = ""
    server_cwd: Annotated[
        str,
        About(
            "For the environment: the folder the single server is started in. Empty: one of its own.",
            env=("MCP_SERVER_CWD",),
        ),
    ] = ""
