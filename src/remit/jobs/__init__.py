"""Durable runs: what recipe code sees, its effects and waits, plans, resume and replay."""
