"""The web: search, fetch and extract, as tools that only read and whose output is untrusted."""
