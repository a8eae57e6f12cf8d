"""The logical plan: a query bound, checked and explained."""
