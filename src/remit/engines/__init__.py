"""What places jobs on machines."""
