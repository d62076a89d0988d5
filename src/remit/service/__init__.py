"""What every face calls: commands change something, queries look."""
