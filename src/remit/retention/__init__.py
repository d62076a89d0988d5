"""Retention: what has to be kept stays, and the rest goes, with stubs in its place."""
