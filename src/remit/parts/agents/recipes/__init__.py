"""The recipes of agents."""
