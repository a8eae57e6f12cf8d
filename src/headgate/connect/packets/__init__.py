"""Network packets that are made up by rule."""
