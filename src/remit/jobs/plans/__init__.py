"""Task graphs (`taskgraph-v1`): read from a file, checked, and carried out through a run."""
