"""JSON-RPC over lines, as MCP speaks it on stdio: one side's half of a conversation, client or server."""
