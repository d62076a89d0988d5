"""Policy: rules over tools, callers and arguments, decided by pure functions (deny > ask > allow)."""
