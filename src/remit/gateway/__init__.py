"""The one door: every tool call, no matter who makes it, passes these stages (rule 1)."""
