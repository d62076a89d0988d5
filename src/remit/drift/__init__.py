"""Versions of everything that was recorded against those of today, and recorded decisions under other rules."""
