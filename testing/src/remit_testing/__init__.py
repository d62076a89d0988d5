"""Public contract suites and the clocks, contexts and scripts they are run with."""
