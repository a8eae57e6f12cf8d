"""One batch's part of an operator: tuples reduced, held and matched, windows closed, state merged."""
