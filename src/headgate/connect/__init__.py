"""What comes in and what goes out: sources, sinks and tables."""
