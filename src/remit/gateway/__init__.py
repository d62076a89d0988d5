"""The one door: every tool call, whoever makes it, passes these stages (rule 1)."""
