"""Documents: read, searched, and edited in two phases."""
