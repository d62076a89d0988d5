"""Programs whose code changes after a run was recorded, one for each engine; docs/comparison.md has the rows."""
