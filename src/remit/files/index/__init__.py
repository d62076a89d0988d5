"""A full-text index of the passages in a folder's files, kept outside of it and brought up to date by each search."""
