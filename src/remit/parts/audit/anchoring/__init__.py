"""Registers what a recorder's newest checkpoint says of calls over MCP in a log that others keep."""
