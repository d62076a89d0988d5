"""A recorder that signs what the journal says while it is said, and a witness that holds what was signed."""
