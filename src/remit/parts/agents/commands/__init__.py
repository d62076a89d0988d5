"""Commands about the conversations of agents."""
