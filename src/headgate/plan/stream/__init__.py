"""A query as a flow runs it: stages, and the ways by which tuples come into them."""
