"""Engines place jobs on machines."""
