"""The commands of drift."""
