"""A whole input at once: logical nodes carried out as DataFrame operations."""
