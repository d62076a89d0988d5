"""Recipes that come with Remit."""
