"""Partials that queries share: tables, their layout, and the levels that they belong to."""
