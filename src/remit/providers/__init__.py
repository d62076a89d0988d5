"""Sources of tools; none knows another, and only the wiring names them."""
