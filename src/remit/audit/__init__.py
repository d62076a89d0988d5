"""Audit: evidence packages of what was recorded."""
