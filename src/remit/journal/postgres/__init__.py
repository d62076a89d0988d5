"""The journal in PostgreSQL, for many processes and machines."""
