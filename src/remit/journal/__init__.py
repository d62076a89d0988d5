"""The record: streams of events, their heads, leases and blobs."""
