"""What things are called on disk, the same for all who look for them."""

from __future__ import annotations

#: Where Spark keeps its own log of a flow, below the checkpoint.
LOG = "source"


def batch_name(batch: int) -> str:
    """What a batch is called in the names of files, in their order."""
    return f"{batch:010d}"
