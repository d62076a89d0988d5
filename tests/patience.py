"""How long tests wait for what will come: longer than a busy machine takes, and no longer where all is well."""

from __future__ import annotations

from typing import Final

PATIENCE_S: Final = 60.0
"""The bound of every wait of a test in a browser or at a terminal."""
