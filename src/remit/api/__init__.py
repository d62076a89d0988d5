"""The HTTP API: one table of routes over the service, and the OpenAPI document that is made from it."""
