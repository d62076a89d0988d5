"""The tools of MCP servers, through the official SDK's sessions over our own stdio transport."""
