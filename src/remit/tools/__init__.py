"""Tools: what they are called, what they take, what changed in them, and which one a name means."""
