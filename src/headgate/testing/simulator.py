"""The simulator: the protocol of a flow over a disk in memory, with the process ending at any write, many times over.

The order of the steps, what they decide, what the manifest becomes, how it is written and read, what recovery does and
what is deleted are the real ones. Only what Spark does with tuples is done in plain Python, so thousands of flows run
in a minute.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from types import SimpleNamespace
from typing import Any

from headgate.batch.context import Running, Step, Stored, Work
from headgate.batch.engine import Engine
from headgate.batch.outlet import Outlet
from headgate.batch.pipeline import LEVEL_STEPS, STEPS, passed_through
from headgate.batch.propagate import Punctuated
from headgate.connect.sink import Sink
from headgate.errors import StateError
from headgate.lang import parse_query
from headgate.plan import Catalog, Field, Source, bind
from headgate.plan.stream.stages import Continuous, continuous
from headgate.progress import progress
from headgate.progress.streams import Streams
from headgate.protocol.manifest import Manifest
from headgate.protocol.names import LOG, batch_name
from headgate.store.checkpoint import Checkpoint
from headgate.testing import stand_ins
from headgate.testing.clock import ManualClock
from headgate.testing.crashes import KilledError
from headgate.testing.disk import WHENS, Disk, MemoryFolder, When
from headgate.testing.stand_ins import AXIS, LENGTH, PAIRS, STREAM, SUMS, Tuple, reduced

_WITHIN = 4
_FIELDS = (Field("ts", "timestamp"), Field("v", "int"))
_RULE = progress("ts", within=f"{_WITHIN} microseconds", idle="30 seconds").over("timestamp")
#: So many times a process ends at most; the last one comes to the end.
_KILLS = 6


def _query() -> Continuous:
    sql = f"SELECT sum(v) AS s [RANGE {LENGTH} microseconds, SLIDE {LENGTH} microseconds, WA ts] FROM {STREAM}"
    return continuous(SUMS, bind(parse_query(sql), Catalog([Source(STREAM, _FIELDS, progressing="ts")])))


_QUERY = _query()
_STAGES = {stage.name: stage for stage in _QUERY.stages}
#: The level that the simulated flow has.
_LEVEL: Any = SimpleNamespace(
    depth=0,
    stages=_STAGES,
    aggregating=_STAGES,
    looking_up={},
    joining={},
    holding={},
    axis=lambda _: AXIS,
    origins=lambda _: frozenset((STREAM,)),
)
_STAND_INS: dict[str, Step] = {
    "read": stand_ins.read,
    "look_up": stand_ins.same,
    "set_out": stand_ins.set_out,
    "sample": stand_ins.same,
    "ingest": stand_ins.ingest,
    "set_aside": stand_ins.set_aside,
    "close": stand_ins.close,
    "keep": stand_ins.keep,
    "match": stand_ins.match,
}


@dataclass
class Simulation:
    """What came of many simulated flows."""

    seeds: int = 0
    batches: int = 0
    kills: Counter[tuple[str, When]] = field(default_factory=Counter)
    """By what the process was doing, and when in it, how often it ended there."""
    lost: list[int] = field(default_factory=list)
    """The seeds of flows that lack an answer."""
    twice: list[int] = field(default_factory=list)
    """The seeds of flows that gave an answer twice."""
    wrong: list[tuple[int, str]] = field(default_factory=list)
    """The seeds of flows with an answer, a counter or an error that should not be, and which."""

    @property
    def sound(self) -> bool:
        """Whether nothing was lost, nothing came twice, and nothing was wrong."""
        return not (self.lost or self.twice or self.wrong)

    def __str__(self) -> str:
        lines = [f"{what:24}" + "".join(f"{self.kills[what, when]:8}" for when in WHENS) for what in self._writes]
        heading = f"{'the process ended':24}" + "".join(f"{when:>8}" for when in WHENS)
        found = f"{len(self.lost)} lost, {len(self.twice)} twice, {len(self.wrong)} wrong"
        return "\n".join([f"{self.seeds} flows, {self.batches} batches: {found}", heading, *lines])

    @property
    def _writes(self) -> list[str]:
        return sorted({what for what, _ in self.kills})


def simulate(
    seeds: Iterable[int], steps: Sequence[Step] = STEPS, level_steps: Sequence[Step] = LEVEL_STEPS
) -> Simulation:
    """Runs a flow for each seed: other tuples, other batches, other kills.

    A test may give the steps in another order, to see that the simulator finds what that breaks.

    >>> simulate(range(20)).sound
    True
    """
    found = Simulation()
    for seed in seeds:
        _Flow(seed, steps, level_steps).simulated(found)
    return found


@dataclass(frozen=True)
class _Sink(Sink):
    """A folder of files, one for each name and batch, as of the Parquet sink."""

    disk: Disk

    def deliver(self, answers: Any, name: str, batch: int) -> None:
        """Takes the answers of a batch; those of one that comes again replace what was there."""
        self.disk.put_whole("deliver", f"sink/{name}/{batch:06d}", json.dumps(answers))


class _Flow:
    """One flow, from its first start to its end."""

    def __init__(self, seed: int, steps: Sequence[Step], level_steps: Sequence[Step]) -> None:
        self.seed, self.rng = seed, Random(seed)
        self.disk, self.clock = Disk(self.rng), ManualClock()
        self._steps = self._stood_in(steps, level_steps)
        self.kept = self.rng.random() < 0.5
        """Whether the flow keeps the answers itself, besides the sink."""
        self.source = self._drawn()

    def simulated(self, found: Simulation) -> None:
        """Runs the flow, and looks at what came of it."""
        found.seeds += 1
        try:
            manifest = self._to_the_end()
        except (StateError, KeyError, ValueError) as error:
            found.wrong.append((self.seed, f"{type(error).__name__}: {error}"))
            return
        finally:
            found.kills.update(self.disk.reached)
        found.batches += manifest.batch + 1
        self._check(manifest, found)

    # How it runs

    def _drawn(self) -> list[list[Tuple]]:
        count = self.rng.randint(2, 5)
        numbers = range(count * self.rng.randint(1, 4))
        tuples: list[Tuple] = [(3 * n + self.rng.randint(0, _WITHIN), n + 1, self.rng.random()) for n in numbers]
        ends = sorted(self.rng.randint(0, len(tuples)) for _ in range(count - 1))
        return [tuples[a:b] for a, b in zip([0, *ends], [*ends, len(tuples)], strict=True)]

    def _stood_in(self, steps: Sequence[Step], level_steps: Sequence[Step]) -> list[Step]:
        within = [_STAND_INS.get(step.__name__, step) for step in level_steps]

        def levels(context: Any) -> Any:
            sampling = context.input.left_out.sampling
            work: Any = Work(_LEVEL, sampling, None, None, Punctuated({}, set()))  # type: ignore[arg-type]
            return passed_through(within, replace(context, at=work))

        return [levels if step.__name__ == "levels" else _STAND_INS.get(step.__name__, step) for step in steps]

    def _to_the_end(self) -> Manifest:
        for _ in range(self.rng.randint(0, _KILLS)):
            self.disk.kills = {self.disk.writes + self.rng.randint(0, 30): self.rng.choice(WHENS)}
            try:
                return self._process()
            except KilledError:
                self.clock.advance(self.rng.choice((0, 1, 100)))
        self.disk.kills = {}
        return self._process()

    def _process(self) -> Manifest:
        """A process: it starts from the disk, and runs what the source has left."""
        checkpoint = Checkpoint(MemoryFolder(self.disk, "c"), f"{self.rng.getrandbits(32):08x}", "a process")
        engine = Engine(_Prepared(self, checkpoint), checkpoint.manifests.last(), self._steps)  # type: ignore[arg-type]
        checkpoint.check_log(engine.manifest)
        engine.finish_tick()
        log = checkpoint.root / f"{LOG}/commits"
        for number in range(len(log.files()), len(self.source)):
            if checkpoint.is_next(engine.manifest, number):
                engine.run({STREAM: _Read(self.source[number])}, number)  # type: ignore[dict-item]
            # Spark makes the entry at once, once the batch is over.
            log.write_new(batch_name(number), "v1", "")
            self.clock.advance(self.rng.choice((0, 1, 5)))
        # In a lull, time alone brings punctuation. It comes last here: no tuple is late.
        self.clock.advance(45)
        if engine.is_due():
            engine.run({}, None)
        if not engine.has_ended(STREAM):
            engine.run({}, None, ended=[STREAM])
        return engine.manifest

    def running(self, checkpoint: Checkpoint, manifest: Manifest) -> Running:
        """What the flow is made of in a process."""
        rows = stand_ins.StandInRows(self.disk, checkpoint.mark, self.rng)
        stored: Any = Stored(
            stand_ins.StandInState(rows),  # type: ignore[arg-type]
            stand_ins.StandInTuples(rows),  # type: ignore[arg-type]
            stand_ins.StandInAnswers(rows),  # type: ignore[arg-type]
        )
        outlets = [Outlet(name, _Sink(self.disk)) for name in (SUMS, PAIRS)]
        program = SimpleNamespace(
            queries={SUMS: _QUERY, PAIRS: _QUERY},
            stages=_STAGES,
            closing=_STAGES,
            outlets=outlets,
            numbered=frozenset(),
            watches={STREAM: None},
            spark=_NO_SPARK,
            keeps=lambda _: self.kept,
        )
        span = SimpleNamespace(spans=lambda *_: {}, advance=lambda *_: None)
        shedding = stand_ins.StandInShedding(self.rng, dict(manifest.shedding.get("rates", {})))
        streams = Streams({STREAM: _RULE}, manifest.progress.trackers, _STAGES)
        parts: list[Any] = [program, checkpoint, stored, streams, shedding, span, self.clock, threading.Lock()]
        return Running(*parts)

    # What came of it

    def _check(self, manifest: Manifest, found: Simulation) -> None:
        rates = manifest.shedding["rates"]
        taken = [t for batch, own in enumerate(self.source) for t in own if t[2] < rates[str(batch)]]
        windows = sorted({t[0] // LENGTH for t in taken})
        sums = [[w, *reduced(t for t in taken if t[0] // LENGTH == w)] for w in windows]
        tuples = sorted(t for batch in self.source for t in batch)
        pairs = [[a[1], b[1]] for a in tuples for b in tuples if a[0] == b[0] and a[1] < b[1]]
        for name, expected in ((SUMS, sums), (PAIRS, pairs)):
            given = [row for path, text in self.disk.contents.items() if _is_of(path, name) for row in json.loads(text)]
            self._compare(name, given, expected, found)
            if self.kept:
                rows = stand_ins.StandInRows(self.disk, "", self.rng)
                self._compare(name, stand_ins.StandInAnswers(rows).kept(name, manifest), expected, found)
        counted = manifest.counters["rows"].get(STREAM, 0)
        if counted != len(tuples):
            found.wrong.append((self.seed, f"{counted} tuples were counted, of {len(tuples)}"))
        left = {path for path in self.disk.contents if path.startswith(("c/state/", "c/tuples/"))}
        named = {f"c/{p}" for f in (*manifest.state.files, *manifest.state.tuples) for p in f.paths}
        if left != named:
            found.wrong.append((self.seed, f"files that no manifest names, or that are gone: {sorted(left ^ named)}"))

    def _compare(self, name: str, given: list[Any], expected: list[Any], found: Simulation) -> None:
        own, wanted = Counter(map(tuple, given)), Counter(map(tuple, expected))
        if wanted - own:
            found.lost.append(self.seed)
        for row in own - wanted:
            if row in wanted:
                found.twice.append(self.seed)
            else:
                found.wrong.append((self.seed, f"{name} gave {row}"))


@dataclass(frozen=True)
class _Prepared:
    """Stands in for the preparation of a real flow."""

    flow: _Flow
    checkpoint: Checkpoint

    def started(self, manifest: Manifest) -> tuple[Running, Manifest]:
        """What the flow is made of."""
        return self.flow.running(self.checkpoint, manifest), manifest


@dataclass(frozen=True)
class _Read:
    """What the source has of a batch."""

    tuples: list[Tuple]
    amount: float | None = None


_NO_SPARK = SimpleNamespace(
    conf=SimpleNamespace(get=lambda _, default=None: default), sparkContext=SimpleNamespace(defaultParallelism=2)
)


def _is_of(path: str, name: str) -> bool:
    return path.startswith(f"sink/{name}/")
