"""The checkpoint as one run sees it: what has happened, what was begun, and whether another run is at work."""

from __future__ import annotations

import os
import socket
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property

from headgate.errors import StateError
from headgate.protocol.decision import Decision
from headgate.protocol.files import Files
from headgate.protocol.manifest import Manifest
from headgate.protocol.names import ANSWERS, COMMITS, DECISIONS, LOG, STATE, TUPLES
from headgate.protocol.recovery import Turn, abandoned, fits, turn, unnamed
from headgate.protocol.transitions import committed_by
from headgate.store.decisions import Decisions
from headgate.store.faults import reach
from headgate.store.manifests import Manifests


def _mark() -> str:
    return uuid.uuid4().hex[:8]


def _who() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}, since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"


@dataclass(frozen=True)
class Checkpoint:
    """A folder with all that a flow needs to go on."""

    root: Files
    mark: str = field(default_factory=_mark)
    """Tells the folders of this run from those of another one that may be at the same batch."""
    who: str = field(default_factory=_who)
    """This run, for people."""

    @property
    def path(self) -> str:
        """Where it is."""
        return self.root.path

    @cached_property
    def manifests(self) -> Manifests:
        """What has happened."""
        return Manifests(self.root / COMMITS)

    @cached_property
    def decisions(self) -> Decisions:
        """What was begun."""
        return Decisions(self.root / DECISIONS)

    def pending(self, manifest: Manifest) -> Decision | None:
        """The decision of a batch that was begun and not committed."""
        return self.decisions.of(manifest.batch + 1)

    # Whether all of it belongs together

    def check_alone(self, manifest: Manifest) -> None:
        """Raises an error if another run has committed a batch since this one did."""
        self.manifests.check_last(manifest.batch, self.mark)

    def check_log(self, manifest: Manifest) -> None:
        """Raises an error if the log of the streams and the commits of the flow do not fit together."""
        files = (self.root / f"{LOG}/commits").files()
        last = max((int(f.name) for f in files if f.name.isdigit()), default=-1)
        if not fits(manifest, last):
            raise self._out_of_step(manifest, last)

    def is_next(self, manifest: Manifest, source_batch: int) -> bool:
        """Whether a batch of the source is to be run: not if it has happened, and the source did not get to know."""
        match turn(manifest, source_batch):
            case Turn.RUN:
                return True
            case Turn.SKIP:
                self.check_alone(manifest)
                return False
            case Turn.OUT_OF_STEP:
                raise self._out_of_step(manifest, source_batch)

    def _out_of_step(self, manifest: Manifest, source_batch: int) -> StateError:
        try:
            self.check_alone(manifest)
        except StateError as taken:
            return taken
        path, known = self.path, manifest.source.batch
        if source_batch > known and (damaged := self.manifests.damaged(manifest.batch)):
            return StateError(
                f"the commit {damaged[-1]} is damaged, and Spark's log of the streams is past it: put the file back as"
                f" it was; all before it is whole, up to batch {known} of the streams, and nothing has been changed"
            )
        wrong = (
            f"the log was deleted, or is older than the rest: put {path}/{LOG} back as it was"
            if source_batch < known
            else f"commits are missing: put {path}/{COMMITS} back as it was"
        )
        return StateError(
            f"the checkpoint {path} is not of one piece: Spark's log of its streams has come to batch {source_batch},"
            f" and its commits to batch {known}; {wrong}"
        )

    # What a batch writes

    def begin(self, decision: Decision) -> None:
        """Writes down what a batch is about, before anything is done."""
        self.decisions.write(decision)
        reach("decided")

    def commit(self, manifest: Manifest) -> Manifest:
        """Makes a batch have happened; gives its manifest as this run has committed it."""
        manifest = committed_by(manifest, self.mark, self.who)
        self.manifests.commit(manifest, self.mark)
        reach("committed")
        return manifest

    # What nobody needs any more

    def clean(self, manifest: Manifest) -> None:
        """Deletes what the manifest does not name, also what a crash kept an earlier batch from deleting."""
        for kind in (STATE, TUPLES):
            for folder in unnamed([f"{kind}/{name}" for name in (self.root / kind).folders()], manifest):
                (self.root / folder).delete()
        self.decisions.clear()

    def clean_answers(self, manifest: Manifest) -> None:
        """Deletes the answers that a crash has left of batches that were begun and not committed."""
        for name in abandoned((self.root / ANSWERS).folders(), manifest):
            (self.root / f"{ANSWERS}/{name}").delete()
