"""Agents: a model that calls tools until it has answered, as part of a durable run."""
