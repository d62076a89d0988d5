"""The one read model: what the journal says of jobs, sessions and steps, as every face shows it."""
