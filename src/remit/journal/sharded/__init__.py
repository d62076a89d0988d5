"""A journal whose streams are spread over several PostgreSQL servers by the root of their names."""
