"""The reference evaluator: plain and slow, over Python lists, so that a reader can see that it is right."""

from headgate.reference.evaluator import evaluate, run

__all__ = ["evaluate", "run"]
