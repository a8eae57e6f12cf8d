"""How we get along with Spark: its errors, its streaming query, the way it splits what it reads."""
