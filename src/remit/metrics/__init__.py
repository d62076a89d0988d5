"""Counters, gauges and histograms of one process: cheap to count, bounded in number, read with `Registry.collect`."""
