"""Joins of which a part is left out."""
