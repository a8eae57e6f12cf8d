"""What files and folders of a checkpoint are called."""

from __future__ import annotations

import re

#: Where Spark keeps its own log of the streams.
LOG = "source"
COMMITS, DECISIONS = "commits", "decisions"
STATE, TUPLES, ANSWERS = "state", "tuples", "answers"
#: A folder of answers. In layout 6 it has no mark, and may still have a depth, or say that it is of joins.
ANSWERS_NAME = re.compile(r"(?P<batch>\d+)(-d\d{1,6})?(-j)?(-(?P<mark>\w+))?")


def batch_name(batch: int) -> str:
    """A batch in the names of files, which sort as batches follow one another.

    >>> batch_name(12)
    '0000000012'
    """
    return f"{batch:010d}"


def state_folder(batch: int, depth: int, mark: str, merges: int = 0) -> str:
    """Where a run puts the partial rows of a batch, or those that the batch merges.

    >>> state_folder(3, 1, "a1b2", merges=2)
    'state/0000000003-d1-m2-a1b2'
    """
    return f"{STATE}/{batch_name(batch)}{_depth(depth)}{f'-m{merges}' if merges else ''}-{mark}"


def tuples_folder(batch: int, depth: int, mark: str) -> str:
    """Where a run puts the tuples of a batch that are kept."""
    return f"{TUPLES}/{batch_name(batch)}{_depth(depth)}-{mark}"


def merged_tuples_folder(batch: int, mark: str) -> str:
    """Where a run puts all kept tuples, merged by a batch."""
    return f"{TUPLES}/{batch_name(batch)}-m-{mark}"


def answers_folder(batch: int, depth: int, mark: str, joins: bool = False) -> str:
    """Where a run puts the answers of the stages of one depth; the pairs of joins are apart."""
    return f"{ANSWERS}/{batch_name(batch)}{_depth(depth)}{'-j' if joins else ''}{f'-{mark}' if mark else ''}"


def _depth(depth: int) -> str:
    return f"-d{depth}" if depth else ""
