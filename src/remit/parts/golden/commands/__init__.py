"""Commands about golden jobs."""
