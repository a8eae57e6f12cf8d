"""The protocol of a flow over a disk in memory: wherever the process ends, each answer is given once."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.support import FUZZ

from headgate.batch.context import Step
from headgate.batch.pipeline import LEVEL_STEPS, STEPS
from headgate.protocol.names import batch_name
from headgate.store.manifests import Manifests
from headgate.testing.disk import WHENS
from headgate.testing.simulator import simulate

#: So many flows in each run.
FLOWS = 10_000
#: What a process does that can end: each has to end before, in and after it.
WRITES = {
    "write decisions",
    "write state",
    "write tuples",
    "write answers",
    "deliver",
    "make commits",
    "delete commits",
    "make source",
    "delete state",
    "delete tuples",
    "delete answers",
    "delete decisions",
}


def test_nothing_is_lost_and_nothing_comes_twice() -> None:
    found = simulate(range(FUZZ * FLOWS, FUZZ * FLOWS + FLOWS))
    print(found)
    assert found.sound, f"{found}\n{found.lost[:3]} {found.twice[:3]} {found.wrong[:3]}"
    assert found.kills.keys() == {(what, when) for what in WRITES for when in WHENS}


def moved(steps: Sequence[Step], step: str, before: str) -> list[Step]:
    """The steps with one of them moved before another."""
    (own,) = (s for s in steps if s.__name__ == step)
    others = [s for s in steps if s is not own]
    place = next(i for i, s in enumerate(others) if s.__name__ == before)
    return [*others[:place], own, *others[place:]]


@pytest.mark.parametrize(("step", "before"), [("commit", "deliver"), ("clean", "compact"), ("commit", "compact")])
def test_steps_in_another_order_are_found(step: str, before: str) -> None:
    assert not simulate(range(1_000), steps=moved(STEPS, step, before)).sound


def test_a_level_that_closes_before_it_ingests_is_found() -> None:
    assert not simulate(range(200), level_steps=moved(LEVEL_STEPS, "close", "ingest")).sound


def test_a_commit_that_is_not_whole_at_once_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The manifest before is gone first, and the new one may be cut short: then nothing is left to go on from."""

    def commit(self: Manifests, manifest: object, mark: str) -> None:
        del mark
        for file in self._folder.files():
            self._folder.delete(file.name)
        self._folder.write(batch_name(manifest.batch), manifest_text(manifest))  # type: ignore[attr-defined, arg-type]

    from headgate.store.layout import manifest_text

    monkeypatch.setattr(Manifests, "commit", commit)
    assert not simulate(range(500)).sound


def test_a_decision_that_is_written_too_late_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay draws another sample then, and the answers of the first try stay where they are."""
    monkeypatch.setattr("headgate.store.checkpoint.Checkpoint.pending", lambda *_: None)
    assert not simulate(range(1_000)).sound
