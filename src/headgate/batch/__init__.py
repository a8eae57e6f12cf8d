"""One micro-batch of a flow."""
