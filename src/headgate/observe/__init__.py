"""What is said of a flow to those who watch it."""
