"""Search in a folder of the person's own files, over an index that is kept beside and never in it."""

from remit.providers.folder.provider import FolderSearchProvider

__all__ = ["FolderSearchProvider"]
