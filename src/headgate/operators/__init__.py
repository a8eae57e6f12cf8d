"""Operators: logical nodes carried out as DataFrame operations."""

from headgate.operators.lower import lower

__all__ = ["lower"]
