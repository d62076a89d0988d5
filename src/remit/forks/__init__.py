"""Forks: a job run again from a step, with something changed; and two runs laid beside each other."""
