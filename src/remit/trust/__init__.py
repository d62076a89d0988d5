"""Which project folders are trusted: what their settings would do, and where it is kept that someone agreed."""
