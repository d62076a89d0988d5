"""A browser: pages that are opened, read, clicked and typed into, in the sandbox and behind the filtering proxy."""
