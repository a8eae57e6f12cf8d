"""The reference evaluator: naive, over Python lists, and right by inspection."""

from headgate.reference.evaluator import evaluate, run

__all__ = ["evaluate", "run"]
