"""Whole windows and groups that are dropped."""
