"""What users touch: flows and their runs, answers at once, the session, scripts."""
