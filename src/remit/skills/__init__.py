"""Skills: packages of instructions and permissions that decide what an agent may do."""
