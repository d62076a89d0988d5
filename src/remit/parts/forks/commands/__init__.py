"""Commands about forks."""
