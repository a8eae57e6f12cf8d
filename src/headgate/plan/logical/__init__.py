"""The logical plan: a query is bound, checked and explained here."""
