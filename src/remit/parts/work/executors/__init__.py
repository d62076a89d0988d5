"""Executors: what does the work of a run, and the adapter that takes back only what is proved."""
