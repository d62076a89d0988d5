"""Files below the folders that the operator opened to agents."""

from remit.providers.fs.provider import FsProvider

__all__ = ["FsProvider"]
