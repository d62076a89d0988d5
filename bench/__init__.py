"""Benchmarks: each measurement beside its floor, in one run. `make bench` runs them all."""
