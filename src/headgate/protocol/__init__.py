"""What a batch decides and what it leaves, as plain values: no Spark, no disk."""
