"""Where MCP is served over HTTP; known without loading the SDK."""

from typing import Final

PATH: Final = "/mcp"
