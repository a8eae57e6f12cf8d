"""What a batch decides and what it leaves behind, as plain values: no Spark, no disk."""
