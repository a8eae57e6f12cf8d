"""What is learned of streams, costs and upkeep."""
