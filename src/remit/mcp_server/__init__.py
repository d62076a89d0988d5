"""The governed catalog, to any MCP client: over stdio or streamable HTTP, in both eras of the protocol."""
