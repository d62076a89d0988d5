"""JSON-RPC as MCP speaks it, over a pipe or HTTP: one side's half of a conversation, client or server."""
