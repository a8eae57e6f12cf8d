"""What a batch does beside its tuples is told before it: windows that close, and state that is merged."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from headgate.progress.place import written
from headgate.protocol.manifest import Manifest, ProgressPart, StateFiles, StatePart, WindowsPart
from headgate.shed.live.upkeep import Rhythm, Upkeep
from headgate.windows import Sliding

TUPLES = 100
#: How far a batch goes.
AHEAD = 10
#: No state is to be merged.
NOTHING = {False: 0.0, True: 0.0}


@pytest.fixture
def rhythm() -> Rhythm:
    stages = {"q": SimpleNamespace(window=Sliding(60, 20, "ts"))}
    return Rhythm(cast(Any, SimpleNamespace(aggregating=stages, origins=lambda _: ["S"])), {})


def manifest(highest: int, files: tuple[StateFiles, ...] = ()) -> Manifest:
    """After a batch that got so far, without disorder."""
    return Manifest(
        progress=ProgressPart(highest={"S": written(highest)}),
        windows=WindowsPart(closed={"q": (highest - 60) // 20}),
        state=StatePart(files=files),
    )


def files(*merges: int) -> tuple[StateFiles, ...]:
    return tuple(StateFiles(f"state/{i}-{m}", (), {}, rows=50, bytes=1, merges=m) for i, m in enumerate(merges))


def test_windows_that_will_close_are_told(rhythm: Rhythm) -> None:
    for place in range(100, 300, AHEAD):
        before, after = manifest(place), manifest(place + AHEAD)
        answers = 7 * (after.windows.closed["q"] - before.windows.closed["q"])
        expected = rhythm.expected(before, {"S": place}, {"S": TUPLES}, due=NOTHING)
        did = rhythm.observe(before, after, {"S": TUPLES}, answers)
        if place > 120:  # From the first batch, and the first window, on.
            assert expected == did
    assert rhythm.usual.closings == pytest.approx(0.5, abs=0.1)


def test_more_tuples_close_more_windows(rhythm: Rhythm) -> None:
    rhythm.observe(manifest(100), manifest(120), {"S": TUPLES}, 7)
    assert rhythm.expected(manifest(120), {"S": 120}, {"S": 3 * TUPLES}, due=NOTHING) == Upkeep(1.0, 21.0)
    assert rhythm.expected(manifest(120), {"S": 120}, {"S": TUPLES / 2}, due=NOTHING) == Upkeep()


def test_a_live_stream_goes_on_with_time(rhythm: Rhythm) -> None:
    """More tuples in the same time do not take it further."""
    rhythm.observe(manifest(100), manifest(120), {"S": TUPLES}, 7, seconds=20.0)
    at = manifest(120), {"S": 120}
    assert rhythm.expected(*at, {"S": 5 * TUPLES}, due=NOTHING, seconds=20.0) == Upkeep(1.0, 7.0)
    assert rhythm.expected(*at, {"S": 5 * TUPLES}, due=NOTHING, seconds=10.0) == Upkeep()
    assert rhythm.expected(*at, {"S": 5 * TUPLES}, due=NOTHING) == Upkeep(1.0, 35.0)  # Read from where it is kept.
    again = Rhythm(rhythm._level, rhythm.state())
    assert again.expected(*at, {"S": 1.0}, due=NOTHING, seconds=40.0) == Upkeep(1.0, 14.0)


def test_it_goes_on_after_a_restart(rhythm: Rhythm) -> None:
    rhythm.observe(manifest(100), manifest(120), {"S": TUPLES}, 7)
    again = Rhythm(rhythm._level, rhythm.state())
    at = manifest(120), {"S": 120}, {"S": TUPLES}
    due = {False: 5, True: 9}
    assert again.expected(*at, due=due) == rhythm.expected(*at, due=due) == Upkeep(1.0, 7.0, 1.0, 9.0)


def test_what_cannot_be_told_is_not_expected(rhythm: Rhythm) -> None:
    assert rhythm.expected(Manifest(), {}, {"S": TUPLES}, due=NOTHING) == Upkeep()


def test_merged_rows_are_seen(rhythm: Rhythm) -> None:
    many, merged = files(*([0] * 8)), StateFiles("state/8-m1", (), {}, rows=60, bytes=1, merges=1)
    did = rhythm.observe(manifest(100, many), manifest(100, (merged,)), {"S": TUPLES}, 0)
    assert (did.merges, did.merged) == (1.0, 400.0)
    # What is no longer needed is deleted, and not merged.
    assert rhythm.observe(manifest(100, many), manifest(100), {"S": TUPLES}, 0).merges == 0.0
