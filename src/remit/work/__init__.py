"""Work: issues that are handed to executors, and the results that are taken back (contract: executors)."""
