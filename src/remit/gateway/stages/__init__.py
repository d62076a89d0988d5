"""The stages a call passes, one a file; pipeline.py holds their order."""
