"""Twelve more servers from npm and PyPI, and what they are asked that needs neither a network nor an account.

With everything, filesystem, memory, git and time they are the seventeen that the table of docs/mcp.md began with.
`make servers` installs them (1.3 GB), REMIT_TEST_SERVERS=1 runs them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.peers import servers
from tests.peers.fidelity import Request, Subject, call, lists, read

BUILT: Final = servers.ROOT / "build" / "servers"
NOWHERE: Final = "http://127.0.0.1:9"
"""A URL at which nothing answers."""
LISTS: Final = lists("prompts", "resources", "resources/templates")


def _npm(
    name: str, module: str, *calls: Request, words: tuple[str, ...] = (), env: dict[str, str] | None = None,
    asks: tuple[Request, ...] = (),
) -> Subject:  # fmt: skip
    """Return a server from npm, with the words after its module and the variables that it wants to start."""
    variables = [f"{variable}={value}" for variable, value in (env or {}).items()]

    def command(folder: Path) -> list[str]:
        program = str(BUILT / "npm" / "node_modules" / module)
        return ["env", f"HOME={folder}", *variables, servers.NODE22, program, *words]

    return Subject(name, command, calls, (*LISTS, *asks))


def _thought(more: object) -> Request:
    return call("sequentialthinking", thought="x", nextThoughtNeeded=more, thoughtNumber=1, totalThoughts=1)


PUBLISHED: Final = (
    _npm(
        "sequential_thinking",
        "@modelcontextprotocol/server-sequential-thinking/dist/index.js",
        _thought(more=False),
        _thought(more="perhaps"),
    ),
    Subject(
        "fetch",
        lambda _folder: [str(BUILT / "fetch" / "bin" / "python"), "-m", "mcp_server_fetch"],
        (call("fetch", url=NOWHERE),),
        (*LISTS, ("prompts/get", {"name": "fetch", "arguments": {"url": NOWHERE}})),
    ),
    _npm(
        "context7",
        "@upstash/context7-mcp/dist/index.js",
        call("query-docs", libraryId="/a/b", query="x"),
        call("resolve-library-id", libraryName="x", query="x"),
        env={"CONTEXT7_API_URL": NOWHERE},
    ),
    _npm(
        "figma",
        "figma-developer-mcp/dist/bin.js",
        call("download_figma_images", fileKey="abc", nodes=[], localPath="../../../../../../x"),
        words=("--figma-api-key=x", "--stdio"),
    ),
    _npm(
        "notion",
        "@notionhq/notion-mcp-server/bin/cli.mjs",
        call("API-get-self"),
        call("API-get-user", user_id="x"),
        env={"BASE_URL": NOWHERE},
    ),
    _npm(
        "desktop_commander",
        "@wonderwhy-er/desktop-commander/dist/index.js",
        call("list_sessions"),
        call("read_file", path="missing.txt"),
        call("get_more_search_results", sessionId="x"),
        call("read_process_output", pid=4_194_305),
        words=("--no-onboarding",),
        asks=(read("ui://desktop-commander/file-preview"), read("ui://no")),
    ),
    _npm(
        "mongodb",
        "mongodb-mcp-server/dist/esm/index.js",
        call("list-connections"),
        call("find", connectionId="x", database="a", collection="b"),
        call("disconnect", connectionId="x"),
        env={"MDB_MCP_TELEMETRY": "disabled"},
        asks=(read("config://config"), read("exported-data://no")),
    ),
    _npm(
        "chrome_devtools",
        "chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js",
        call("list_pages"),
        call("click", pageId=1, uid="x"),
        words=("--headless", "--no-usage-statistics", "--executablePath", "/nowhere"),
    ),
    _npm(
        "firecrawl",
        "firecrawl-mcp/dist/index.js",
        call("firecrawl_parse", filePath="/nowhere/x.pdf"),
        call("firecrawl_monitor_create"),
        call("firecrawl_map", url="https://a.example"),
        env={"FIRECRAWL_API_KEY": "x", "FIRECRAWL_API_URL": NOWHERE},
    ),
    _npm(
        "kubernetes",
        "mcp-server-kubernetes/dist/index.js",
        call("ping"),
        call("stop_port_forward", id="x"),
        asks=(("prompts/get", {"name": "k8s-diagnose", "arguments": {"keyword": "x"}}), read("k8s://no")),
    ),
    _npm(
        "sentry",
        "@sentry/mcp-server/dist/index.js",
        call("get_sentry_resource"),
        call("get_replay_details"),
        env={"SENTRY_ACCESS_TOKEN": "x"},
    ),
    _npm("tavily", "tavily-mcp/build/index.js", call("tavily_search", query="x"), env={"TAVILY_API_KEY": "x"}),
)
