"""Joins that are shed: a part of them is left out."""
