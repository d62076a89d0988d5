"""The commands, each a module that is imported when it runs."""
