"""Adapters: the governed catalog as tools of agents that other frameworks run (docs/adapters.md)."""
