"""Programs that wait in sandboxes that are started ahead: programs for their interpreters, never imported by ours."""
