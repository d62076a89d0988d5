"""Tickets: TRIAGE asks what to do, TOOL does it through the gateway, REPLY answers (contract: tickets)."""
