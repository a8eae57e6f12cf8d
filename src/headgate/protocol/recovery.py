"""What a start finds in a checkpoint, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from headgate.protocol.decision import Decision
from headgate.protocol.manifest import Manifest
from headgate.protocol.names import ANSWERS_NAME


class Turn(Enum):
    """What is to be done with a batch of the source."""

    RUN = "run"
    SKIP = "skip"
    """It has happened, and the source did not get to know."""
    OUT_OF_STEP = "out of step"
    """The source's log and the commits are not of one piece."""


def turn(manifest: Manifest, source_batch: int) -> Turn:
    """Whether a batch that the source offers is the next one.

    >>> turn(Manifest(), 0), turn(Manifest(), 3)
    (<Turn.RUN: 'run'>, <Turn.OUT_OF_STEP: 'out of step'>)
    """
    if source_batch == manifest.source.batch + 1:
        return Turn.RUN
    return Turn.SKIP if source_batch == manifest.source.batch else Turn.OUT_OF_STEP


def fits(manifest: Manifest, last_in_log: int) -> bool:
    """Whether the source's log may be at this batch: it is told of a batch after the commit, so it may lag by one."""
    return manifest.source.batch - 1 <= last_in_log <= manifest.source.batch


def is_tick(pending: Decision | None) -> bool:
    """Whether a batch that was begun and not committed is one that only time brought: nobody will offer it again."""
    return pending is not None and pending.source_batch is None and not pending.ended


def unnamed(folders: Iterable[str], manifest: Manifest) -> list[str]:
    """The folders of state and kept tuples that a manifest does not name: nobody needs them."""
    named = {f.folder for f in (*manifest.state.files, *manifest.state.tuples)}
    return [folder for folder in folders if folder not in named]


def abandoned(names: Iterable[str], manifest: Manifest) -> list[str]:
    """The folders of answers that runs have left that did not commit their batch.

    >>> abandoned(["0000000002-d1-j", "0000000003-j-a1b2c3d4"], Manifest())
    ['0000000003-j-a1b2c3d4']
    """
    found = []
    for name in names:
        parts = ANSWERS_NAME.fullmatch(name)
        if parts is not None and (parts["mark"] or "") != manifest.mark(int(parts["batch"])):
            found.append(name)
    return found
