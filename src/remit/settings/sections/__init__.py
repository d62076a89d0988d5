"""The sections of remit.toml: each a file, named in remit.settings.model."""
