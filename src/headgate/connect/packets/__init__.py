"""Generated network packets."""
