"""What to leave out when more arrives than can be processed."""
