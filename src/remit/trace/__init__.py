"""The story a stream tells."""
