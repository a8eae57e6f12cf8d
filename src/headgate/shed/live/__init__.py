"""Shedding in a running flow: what each batch leaves out, and what is learned from it."""
