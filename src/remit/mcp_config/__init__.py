"""Files that name MCP servers: remit.toml, changed so that comments survive; what other clients write."""
