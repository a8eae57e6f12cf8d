"""Answers from samples: rates, estimators, limits."""
