"""The only package that names adapters: settings in, a working runtime out."""
