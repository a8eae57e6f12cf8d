"""The micro-batch loop: decide, ingest, progress, close, deliver, commit.

A query is run in stages, by levels: the answers that one level closes are the tuples that the next one ingests, in the
same batch. Nothing is kept in memory that the manifest does not have. A batch that a crash cuts off is run again from
its decision, onto the same file names, so it happens once however often it is begun.
"""

from __future__ import annotations

import math
import os
import socket
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headgate.batch.clock import SYSTEM_CLOCK, Clock
from headgate.batch.exclusion import LeftOut
from headgate.batch.exclusion import kept as left_out_for
from headgate.batch.lateness import Lateness
from headgate.batch.propagate import (
    Punctuated,
    closed_windows,
    closings,
    heard,
    kept_by,
    passed_on,
    read_places,
    written_places,
)
from headgate.batch.retained import Keeping
from headgate.batch.sample import Sample, narrowed, only_figures, sample
from headgate.batch.side_outputs import Batches, Leftover, Outlet, failing
from headgate.batch.span import Whereabouts
from headgate.bounded.answer import answer
from headgate.bounded.lower import lower
from headgate.bounded.numbering import with_arrival_numbers
from headgate.connect.scan import sound, together
from headgate.connect.sinks import MemorySink
from headgate.errors import Error, StateError
from headgate.incremental.close import answers
from headgate.incremental.levels import Level, levels
from headgate.incremental.reduce import (
    FIGURES_OBSERVED,
    GROUP,
    MALFORMED,
    NO_TABLE,
    RANKED,
    TABLE,
    Watch,
    figure,
    ingested,
    observation,
    partial_rows,
)
from headgate.plan.logical.nodes import ROW_NUM, SAMPLING_RATE
from headgate.plan.logical.pruned import pruned
from headgate.plan.stream.stages import origins, tables_of
from headgate.progress import (
    Punctuation,
    Reached,
    Rule,
    Seen,
    Tracker,
    coarsened,
    furthest,
    ranks,
)
from headgate.progress.closing import Closing
from headgate.progress.place import from_spark, read, written
from headgate.protocol.manifest import Manifest
from headgate.protocol.names import LOG, batch_name
from headgate.shed.estimate.sql import (
    TAKEN_AT,
    Sampling,
)
from headgate.shed.live.joins import JoinDrops, shed_keeper
from headgate.shed.live.shedding import Shedding
from headgate.shed.policy import exact, limits_for
from headgate.spark.failures import about_queries, plain_errors
from headgate.spark.folder import Folder
from headgate.spark.splitting import splitting
from headgate.sql.text import empty, quoted, stacked
from headgate.store.answers import Answers
from headgate.store.changes import check_columns, used_columns, with_added, without_dropped
from headgate.store.faults import reach
from headgate.store.manifests import Manifests, sealed, whole
from headgate.store.state import State
from headgate.store.tuples import Keeper, Tuples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.connect.scan import Read
    from headgate.connect.tables import Tables
    from headgate.plan.stream.stages import Continuous, Stage
    from headgate.shed.controller import Overload
    from headgate.shed.policy import Policy
    from headgate.windows import Number


@dataclass(frozen=True)
class BatchReport:
    """What a batch did, for those who watch."""

    batch: int
    rows: int
    seconds: dict[str, float]
    answers: dict[str, int]
    late: dict[str, int]
    state_rows: int
    state_bytes: int
    shed: dict[str, int] = field(default_factory=dict)
    """By query, the tuples that were left out."""
    dropped: dict[str, int] = field(default_factory=dict)
    """By query, the windows that are not answered."""


class Loop:
    """Runs the batches of a flow, one at a time."""

    def __init__(
        self,
        spark: SparkSession,
        checkpoint: str,
        schemas: dict[str, StructType],
        rules: Mapping[str, Rule | None],
        queries: Mapping[str, Continuous],
        texts: Mapping[str, str],
        outlets: Sequence[Outlet],
        tables: Tables,
        policies: Mapping[str, Policy],
        anew: Collection[str] = (),
        manifest: Manifest | None = None,
        overload: Overload | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.clock = clock
        self.spark, self.queries, self.outlets = spark, queries, outlets
        self.root = Folder(spark, checkpoint)
        self._manifests = Manifests(self.root / "commits")
        self._decisions = self.root / "decisions"
        self._texts, self._anew, self._tables = dict(texts), anew, tables
        self._frames = {name: empty(spark, schema) for name, schema in (schemas | tables.schemas).items()}
        self.stages = {stage.name: stage for query in queries.values() for stage in query.stages}
        self.numbered = frozenset[str]().union(*(query.numbered for query in queries.values()))
        """The streams whose tuples have arrival numbers."""
        for name in self.numbered:
            self._frames[name] = self._frames[name].withColumn(ROW_NUM, F.lit(0).cast("bigint"))
        for query in queries.values():
            for stage in query.stages[:-1]:
                self._frames[stage.name] = empty(spark, lower(stage.plan, self._frames).schema)
        self._watches = [
            Watch(
                name,
                rule.attr if rule else None,
                rule.punctuated_by if rule else None,
                rule.by if rule else None,
                marked=MALFORMED in self._frames[name].columns,
                numbered=name in self.numbered,
                ranked=ranks(rule.slack_rows) if rule and rule.slack_rows is not None else (),
            )
            for name, rule in rules.items()
        ]
        self._good = {watch.stream: watch.is_good(self._frames[watch.stream]) for watch in self._watches}
        # What the flow is at may not be on disk yet, where one change follows another.
        self.manifest = manifest or self._manifests.last()
        self._columns = used_columns(queries)
        known = self._without_dropped(self.manifest)
        self._promised = {
            name: {"attr": rule.attr, "type": schemas[name][rule.attr].dataType.simpleString()}
            for name, rule in rules.items()
            if rule is not None
        }
        check_columns(known, self._columns, self._promised, self.root.path)
        self._policies, self._overload = policies, overload
        shed = {n: limits_for(queries[n], p) for n, p in policies.items() if p != exact()}
        self.levels = levels(list(self.stages.values()), self._watches, self._frames, known.tables, shed)
        self.manifest = self._with_added(known)
        self._state = State(spark, self.root, self.levels)
        self._who = f"process {os.getpid()} on {socket.gethostname()}, since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
        keepers = [
            Keeper(name, side, lower(side.plan, self._frames).schema)
            for name, stage in self.stages.items()
            for side in kept_by(stage)
        ]
        keepers = [shed_keeper(keeper, queries, policies) for keeper in keepers]
        self._tuples = Tuples(spark, self.root, self._state, keepers)
        self.streams = list(schemas)
        self.trackers = {
            name: Tracker.restored(rule, self.manifest.progress[name])
            if name in self.manifest.progress
            else Tracker(rule)
            for name, rule in rules.items()
            if rule is not None
        }
        self._lateness = Lateness(self.stages)
        self._keeping = Keeping(self._tuples, self._lateness)
        self._leftover = Leftover(outlets, self._watches, self.stages, self._lateness)
        self._whereabouts = Whereabouts(self._watches)
        self._answers = Answers(spark, self.root, self._state, queries, self.stages, self.levels, self._frames)
        self._looked_into = {name for query in queries.values() for name in tables_of(query.plan)}
        self._outlooks: dict[str, Any] = {}
        self.reports: list[BatchReport] = []
        self._propagated: dict[str, Punctuation] = {}
        self.shedding = self._shedding()
        self.decided: dict[str, Any] | None = None
        self.lock = threading.Lock()
        """Held while a batch changes what is known of the load, of which others may be told meanwhile."""
        self._last_begun: float | None = None
        self.waits = False
        """Whether batches hold what came since the last one, and not just what there was to be read."""

    def _shedding(self) -> Shedding:
        return Shedding(self.levels, self.stages, self.queries, self._policies, self._overload, self.manifest.shedding)

    def after(self, other: Loop) -> Loop:
        """This loop, going on where another one is; both are of the same flow, with other queries."""
        known = self._without_dropped(other.manifest)
        self.lock = other.lock
        self.manifest = self._with_added(known)
        self.trackers, self.reports, self._propagated = other.trackers, other.reports, other._propagated
        self.shedding, self._last_begun, self.waits = self._shedding(), other._last_begun, other.waits
        self._state.mark, self._who = other._state.mark, other._who
        return self

    def _without_dropped(self, manifest: Manifest) -> Manifest:
        return without_dropped(manifest, self.stages, self._texts, self._columns, self._anew, self.root.path)

    def _with_added(self, known: Manifest) -> Manifest:
        manifest = with_added(known, self.stages, self._texts, self.levels)
        return replace(manifest, columns=self._columns, promised={**known.promised, **self._promised})

    def know(self, sources: list[str], named: bool) -> None:
        """Takes note of the streams that Spark finds the data of, and whether it knows them by name."""
        self.manifest = replace(self.manifest, sources=sources, named=named)

    @property
    def batch(self) -> int:
        """The number of the batch that is run, or would be."""
        return self.manifest.batch + 1

    def pending(self) -> dict[str, Any] | None:
        """The decision of a batch that was begun and not committed."""
        return whole(self._decisions.read(batch_name(self.batch)))

    def run(self, found: Mapping[str, Read], source_batch: int | None, ended: Sequence[str] = ()) -> None:
        """Runs one batch over what was found of some streams; `ended` are the streams that are over with it."""
        try:
            self._run(found, source_batch, ended)
        except Exception as error:
            self.check_alone()  # If another run is at work here, that is what is wrong.
            if isinstance(error, Error):
                about_queries(error, self.queries, lambda query: self._fails(query, found))
            raise

    def _fails(self, query: Continuous, found: Mapping[str, Read]) -> bool:
        """Whether a query cannot be computed over the tuples of a batch alone."""
        frames = self._inputs(query.streams, {name: self._with_numbers(name, own) for name, own in found.items()})
        try:
            with plain_errors():
                rows = answer(pruned(query.plan), {**frames, **self._tables.now(self._looked_into)})
                rows.write.format("noop").mode("overwrite").save()
        except Error as error:
            return error.by_values
        return False

    def _run(self, found: Mapping[str, Read], source_batch: int | None, ended: Sequence[str]) -> None:
        watch = _Stopwatch(self.clock)
        amounts = {name: own.amount for name, own in found.items()}
        interval, self._outlooks = self._interval() if found else None, {}
        # The time that passed while the flow was down is not time in which its sources were quiet.
        held = not self.reports
        about: dict[str, Any] = {
            "source_batch": source_batch,
            "ended": list(ended),
            "now": self.clock.now(),
            "held": held,
        }
        decision = self._decide(about | {"splitting": splitting(self.spark)}, found, interval)
        with self.lock:
            self.shedding.subsets.restore(decision["shed"]["subsets"])
        self._keeping.drops = JoinDrops(self.shedding.joins.completed(decision["shed"]["joins"]), self.batch)
        with plain_errors(), ThreadPoolExecutor(1) as aside, ExitStack() as held_back:
            watch.lap("decide")
            batches = {name: self._with_numbers(name, own) for name, own in found.items()}
            first, tables = self.levels[0], self._tables.now(self._looked_into)
            streams = self._looked_up(first, batches, tables)
            # Joins need not wait for punctuation. Whether tuples are late is found out meanwhile.
            to_match = self._new_tuples(first.joining, streams, {})
            # Their plan is made first: what else the batch does would only hold up the longest of its jobs.
            matching = aside.submit(self._write_pairs, self._pairs(first, to_match))
            sampling = self.shedding.sampling(self.batch, decision["shed"]["rates"])
            samples = self._samples(found, sampling, held_back)
            left_out = LeftOut(first, sampling, found, batches)
            manifest, figures = self._ingest(first, {**streams, **left_out.coined}, self.manifest, sampling, samples)
            watch.lap("ingest")
            self._progress(batches, figures, decision)
            self.check_alone()
            late = self._leftover.late(streams, figures, self.manifest, self.batch)
            bad = self._leftover.bad(batches, figures, self.batch)
            shed = self._leftover.shed(left_out, figures, self.batch)
            watch.lap("progress")
            manifest = replace(manifest, ended=sorted({*manifest.ended, *decision["ended"]}))
            manifest = self._counted(manifest, batches, figures)
            manifest = replace(manifest, highest=manifest.highest | self._highest(manifest, figures))
            with self.lock:
                self._whereabouts.advance(self.shedding.subsets, self.manifest, manifest)
                self.shedding.sampled(figures, sampling.rates, self.manifest, manifest)
                self.shedding.pairs_sampled(figures, self._keeping.drops.plans)
            punctuated = self._told(manifest, decision["now"])
            given: dict[str, int] = {}
            for level in self.levels:
                if level is not first:
                    streams = self._looked_up(level, streams, tables)
                    manifest, _ = self._ingest(level, streams, manifest, self._behind_joins, {}, figures)
                passed_on(level, punctuated)
                now_closed = closed_windows(level, manifest, punctuated)
                closing = closings(level, manifest, now_closed, punctuated.boxes)
                boxes = {name: written_places(box) for name, box in punctuated.boxes.items()}
                manifest = replace(manifest, closed=manifest.closed | now_closed, boxes=manifest.boxes | boxes)
                manifest = heard(level, manifest, punctuated)
                # Whether tuples are late was not known when they set out to meet others.
                anew = level is not first or self._has_late(level.read_by_joins & streams.keys(), figures)
                new = self._new_tuples(level.holding, streams, figures)
                new |= self._new_tuples(level.joining, streams, figures) if anew else to_match
                counts = self._close(level, streams, manifest, closing, new, left_out)
                manifest = self._keeping.kept(level, self.manifest, manifest, new, self.batch)
                matches = matching.result() if level is first else {}
                counts |= self._write_pairs(self._pairs(level, new)) if anew else matches
                streams |= {name: [self._stream(name)] for name in counts if name not in self.queries}
                given |= counts
            watch.lap("close")
            self._deliver(given)
            reach("delivered")
            watch.lap("deliver")
        rows = {name: figures.get(figure(name, "rows")) or 0 for name in batches}
        manifest = replace(
            manifest,
            batch=self.batch,
            source_batch=self.manifest.source_batch if source_batch is None else source_batch,
            progress={name: tracker.state() for name, tracker in self.trackers.items()},
        )
        pairs, given = given, {name: count for name, count in given.items() if name in self.queries}
        dropped = self.shedding.lost(decision["shed"], self.manifest, manifest)
        counters = {"rows": rows, "answers": given, "late": late, "bad": bad, "shed": shed, "dropped": dropped}
        for what, counted in counters.items():
            manifest = manifest.counted(what, counted)
        with plain_errors():
            closes = manifest.closed != self.manifest.closed
            manifest = self._state.compacted(self._state.purged(manifest), self.batch, closes)
            told = read_places(manifest.told)
            rooms = self.shedding.joins.rooms()
            manifest = self._tuples.compacted(self._tuples.purged(manifest, told), self.batch, told, rooms)
            before = {stage: self._tuples.count(self.manifest, stage) for stage in self.shedding.joins.stages}
            with self.lock:
                self.shedding.joins.observe(self._keeping.drops, rows, pairs, before)
        watch.lap("compact")
        with self.lock:
            self.shedding.closed(manifest)
            if found:
                answers = sum(count for name, count in given.items() if name not in self.shedding.joins.stages)
                seconds, manifests = sum(watch.laps.values()), (self.manifest, manifest)
                self.shedding.observe(
                    decision["shed"], amounts, figures, self._outlooks, manifests, answers, seconds, interval
                )
            self.shedding.happened(self.batch, decision["shed"])
            self.decided, manifest = decision["shed"], replace(manifest, shedding=self.shedding.state())
        manifest = manifest.committed_by(self._state.mark, self._who)
        self._manifests.commit(manifest, self._state.mark)
        reach("committed")
        self.manifest = manifest
        self._clean(given)
        watch.lap("commit")
        if found:
            self._try(found, batches, sum(watch.laps.values()) - watch.laps["ingest"])
        size = (manifest.state_rows, manifest.state_bytes)
        report = BatchReport(manifest.batch, sum(rows.values()), watch.laps, given, late, *size, shed, dropped)
        self.reports = [*self.reports[-99:], report]

    @property
    def closing(self) -> dict[str, Stage]:
        """The stages whose windows close."""
        return {name: stage for level in self.levels for name, stage in level.aggregating.items()}

    @cached_property
    def reads(self) -> dict[str, int]:
        """How often each stream is read in a batch: once for each set of keys, and for each query that passes it on."""
        tables = [table for level in self.levels for table in level.tables]
        reduced = Counter(feed.stream for table in tables for feed in table.feeds)
        passed_on = Counter(s for level in self.levels for stage in level.passing_on.values() for s in stage.streams)
        # A new tuple meets those that are kept and those that are new, and is kept.
        keeping = [stage for level in self.levels for stage in (*level.joining.values(), *level.holding.values())]
        passed_on.update(s for stage in keeping for s in stage.streams * 3)
        for name, stage in reversed([i for level in self.levels for i in level.looking_up.items()]):
            passed_on.update(dict.fromkeys(stage.streams, reduced[name] + passed_on[name]))
        by_group = Counter(watch.stream for watch in self._watches if watch.by is not None)
        # How many tuples came, and how far they got, is told by a table, or else by a look of its own. Those that have
        # numbers are counted first.
        reads = {name: (reduced[name] or 1) + passed_on[name] + by_group[name] for name in self._frames}
        return {name: count + (name in self.numbered) for name, count in reads.items()}

    def has_ended(self, stream: str) -> bool:
        """Whether a bounded stream has been read."""
        return stream in self.manifest.ended

    def is_due(self) -> bool:
        """Whether time alone has brought punctuation that closes windows."""
        due = (
            bool(self.manifest.files or self.manifest.tuples) and self.punctuation(self.clock.now()) != self._propagated
        )
        return due and self.pending() is None

    def punctuation(self, now: int, ended: Sequence[str] = ()) -> dict[str, Punctuation]:
        """The punctuation of each stream at a time, no finer than the windows over it; asking changes nothing."""
        found: dict[str, Punctuation] = dict.fromkeys((*self.manifest.ended, *ended), math.inf)
        for name, tracker in self.trackers.items():
            p = _asked(tracker, now)
            stages = [s for s in self.stages.values() if any(name in origins(r, self.stages) for r in s.streams)]
            windows = [s.window for s in stages if s.aggregate and not s.holds and s.window.attr != ROW_NUM]
            # Tuples that are kept are let go one by one.
            found[name] = p if any(kept_by(stage) for stage in stages) else coarsened(p, windows)
        return found

    def keeps(self, query: str) -> bool:
        """Whether the flow keeps the answers of a query itself."""
        taken = [o.sink for o in self.outlets if o.of == query and o.output == "answers"]
        return not taken or any(isinstance(sink, MemorySink) for sink in taken)

    def frame(self, stream: str) -> DataFrame:
        """A DataFrame without rows and with the columns of a stream."""
        return self._frames[stream].drop(MALFORMED)

    def kept(self, query: str) -> DataFrame:
        """The answers of a query that the flow keeps itself."""
        manifest = self.manifest
        return self._answers.kept(query, range(manifest.begun[query], manifest.batch + 1), manifest)

    # Decide

    def check_alone(self) -> None:
        """Raises an error if another run has committed a batch of this checkpoint since this one did."""
        self._manifests.check_last(self.manifest.batch, self._state.mark)

    def check_log(self) -> None:
        """Raises an error if Spark's log of the streams and the commits of the flow do not fit together."""
        files = (self.root / LOG / "commits").files()
        last = max((int(f.name) for f in files if f.name.isdigit()), default=-1)
        if not self.manifest.source_batch - 1 <= last <= self.manifest.source_batch:
            raise self._out_of_step(last)

    def is_next(self, source_batch: int) -> bool:
        """Whether a batch of Spark's is to be run: not if it was committed, and Spark did not get to know."""
        if source_batch == self.manifest.source_batch + 1:
            return True
        if source_batch == self.manifest.source_batch:
            self.check_alone()
            return False
        raise self._out_of_step(source_batch)

    def _out_of_step(self, source_batch: int) -> StateError:
        """The error where Spark's log is at another batch than the flow."""
        try:
            self.check_alone()
        except StateError as taken:
            return taken
        path, known = self.root.path, self.manifest.source_batch
        if source_batch > known and (damaged := self._manifests.damaged(self.manifest.batch)):
            return StateError(
                f"the commit {damaged[-1]} is damaged, and Spark's log of the streams is past it: put the file back as"
                f" it was; all before it is whole, up to batch {known} of the streams, and nothing has been changed"
            )
        wrong = (
            f"the log was deleted, or is older than the rest: put {path}/{LOG} back as it was"
            if source_batch < known
            else f"commits are missing: put {path}/commits back as it was"
        )
        return StateError(
            f"the checkpoint {path} is not of one piece: Spark's log of its streams has come to batch {source_batch},"
            f" and its commits to batch {known}; {wrong}"
        )

    def _decide(self, about: dict[str, Any], found: Mapping[str, Read], interval: float | None) -> dict[str, Any]:
        """What this batch is about, written down before anything is done; a batch that is run again keeps to it."""
        self.check_alone()
        known = self.pending()
        if known is not None:
            return known
        amounts = {name: own.amount for name, own in found.items()}
        with plain_errors():
            spans = self._whereabouts.spans(found, self.shedding.subsets, self.manifest, self.waits)
        told = {name: _asked(tracker, about["now"]) for name, tracker in self.trackers.items()}
        due = {closes: self._state.due(self.manifest, closes) for closes in (False, True)}
        with self.lock:
            decided = self.shedding.decide(self.manifest, amounts, spans, interval, told, due)
        decision = about | {"shed": decided.document()}
        self._decisions.write(batch_name(self.batch), sealed(decision))
        reach("decided")
        return decision

    def _interval(self) -> float | None:
        """The seconds in which what a batch holds has come, if it holds what came since the last one."""
        now = self.clock.elapsed()
        since, self._last_begun = self._last_begun, now
        return now - since if self.waits and since is not None else None

    # Ingest

    def _ingest(
        self,
        level: Level,
        batches: Batches,
        manifest: Manifest,
        sampling: Sampling,
        samples: Mapping[str, Sample],
        known: Mapping[str, Any] | None = None,
    ) -> tuple[Manifest, dict[str, Any]]:
        """Adds the partial rows of a batch to the state of a level, and gives what is found out about its streams.

        What is `known` of the flow's own streams tells whether there are late tuples among them.
        """
        watches = self._watched(level, batches, sampling, samples)
        if not watches:
            return manifest, _known(samples)
        closed_before = self._lateness.closed_before(self.manifest)
        late = closed_before if known is not None and self._has_late(batches, known) else {}
        figures = self._ingested(level, batches, watches, late, sampling, samples)
        if known is None and self._has_late(batches, figures):
            # Rare, so it may cost a second pass.
            figures |= self._ingested(level, batches, watches, closed_before, sampling, samples)
        reach("ingested")
        folder = self._state.folder(self.batch, level.depth)
        if known is None:
            figures["groups"] = self._groups(watches, folder)
        if not figures.get("panes"):
            return manifest, figures
        ends = {axis: (figures[f"first_{i}"], figures[f"last_{i}"]) for i, axis in enumerate(level.axes)}
        spans = {axis: (first, last) for axis, (first, last) in ends.items() if first is not None}
        written = self._state.written(folder, spans, figures["panes"], level.depth)
        return replace(manifest, files=(*manifest.files, written)), figures

    def _watched(
        self, level: Level, batches: Batches, sampling: Sampling, samples: Mapping[str, Sample]
    ) -> list[Watch]:
        """What to look for in the streams of a level that a batch has tuples of."""
        found = [
            replace(w, kept=left_out_for(level, w.stream, sampling), known=_is_known(samples.get(w.stream)))
            for w in level.watches
            if w.stream in batches
        ]
        return [w for w in found if (w.figures and (w.kept or not w.known)) or level.reduces(w.stream)]

    def _ingested(
        self,
        level: Level,
        batches: Batches,
        watches: Sequence[Watch],
        late: Mapping[str, Number],
        sampling: Sampling,
        samples: Mapping[str, Sample],
    ) -> dict[str, Any]:
        rows = ingested(batches, level.tables, watches, late, sampling, {s: own.pieces for s, own in samples.items()})
        observed = Observation()
        columns = level.columns(rows, frozenset(w.stream for w in watches))
        axes = list(level.axes.values()) if any(level.reduces(stream) for stream in batches) else []
        sums = self.shedding.sums() if axes and level is self.levels[0] else {}
        watched = rows.observe(observed, observation(watches, axes, sums))
        kept = partial_rows(watched, columns)
        if kept is None:
            watched.write.format("noop").mode("overwrite").save()
        else:
            self._state.write(kept, self._state.folder(self.batch, level.depth))
        return {**observed.get[FIGURES_OBSERVED].asDict(), **_known(samples)}

    def _try(self, found: Mapping[str, Read], batches: Batches, otherwise: float) -> None:
        """Ingests a batch once more, at the rates that are to be tried, if any are, to see how long that takes.

        So the price of what can be shed is known before anything is. Nothing comes of it; `otherwise` is how long
        the rest of the batch took.
        """
        rates, first = self.shedding.to_try(self.batch, otherwise), self.levels[0]
        if not rates:
            return
        sampling, begun = Sampling(rates, self.batch), self.clock.elapsed()
        with plain_errors(), ExitStack() as until:
            samples = self._samples(found, sampling, until)
            streams = self._looked_up(first, batches, self._tables.now(self._looked_into))
            streams |= LeftOut(first, sampling, found, batches).coined
            if watches := self._watched(first, streams, sampling, samples):
                pieces = {name: own.pieces for name, own in samples.items()}
                rows = ingested(streams, first.tables, watches, {}, sampling, pieces)
                rows.write.format("noop").mode("overwrite").save()
                with self.lock:
                    self.shedding.tried(rates, otherwise + self.clock.elapsed() - begun)

    def _samples(self, found: Mapping[str, Read], sampling: Sampling, until: ExitStack) -> dict[str, Sample]:
        """The tuples of streams that tables do with which do not need all of them."""
        first, samples = self.levels[0], {}
        passed_on = {
            s for stage in self.stages.values() if stage.aggregate is None or stage.holds for s in stage.streams
        }
        for watch in (w for w in self._watches if w.stream in found.keys() - self.numbered):
            own = found[watch.stream]
            taken = sample(first, watch, own, sampling, until) or only_figures(first, watch, own, sampling)
            if taken is None and watch.stream not in passed_on:
                taken = narrowed(first, watch, self._frames[watch.stream], own, sampling)
            if taken is not None:
                samples[watch.stream] = taken
        return samples

    def _with_numbers(self, stream: str, own: Read) -> Sequence[DataFrame]:
        """The tuples of a stream with their arrival numbers, if any query needs them; bad ones have none.

        A batch that is run again reads the same files in the same order, and so gives the same numbers.
        """
        pieces = [piece.df for piece in own.pieces]
        if stream not in self.numbered:
            return pieces
        df, good, first = together(pieces), self._good[stream], self.manifest.numbered.get(stream, 0)
        rows, others = with_arrival_numbers(df, ROW_NUM, first, good, own.place, own.order)
        return [stacked([rows, df.where(f"NOT coalesce({good}, false)").drop(*own.place)])] if others else [rows]

    def _counted(self, manifest: Manifest, batches: Batches, figures: Mapping[str, Any]) -> Manifest:
        """The manifest with the arrival numbers that have been given."""
        more = {name: figures[figure(name, "numbered")] or 0 for name in self.numbered & batches.keys()}
        return replace(
            manifest, numbered=manifest.numbered | {n: manifest.numbered.get(n, 0) + c for n, c in more.items()}
        )

    def _has_late(self, streams: Iterable[str], figures: Mapping[str, Any]) -> bool:
        return any(self._lateness.of(self.manifest, stream, figures) for stream in streams)

    def _new_tuples(self, stages: Iterable[str], batches: Batches, figures: Mapping[str, Any]) -> dict[str, DataFrame]:
        """The new tuples of stages that keep some; the figures tell whether any are late."""
        return self._keeping.new(stages, batches, lambda own: self._inputs(own, batches), self.manifest, figures)

    def _groups(self, watches: Sequence[Watch], folder: str) -> dict[str, dict[str | None, Seen]]:
        """How far each group of the streams that keep progress by group got."""
        if all(w.by is None for w in watches):
            return {}
        state = self.spark.read.parquet(f"{self.root.path}/{folder}")
        rows = state.where(f"{TABLE} = {NO_TABLE}").collect()
        found: dict[str, dict[str | None, Seen]] = {}
        for row in rows:
            ranked = row.asDict().get(f"{GROUP}_{RANKED}")
            seen = _seen(row[f"{GROUP}_rows"], row[f"{GROUP}_highest"], row[f"{GROUP}_punctuated"], ranked)
            found.setdefault(row[f"{GROUP}_stream"], {})[row[GROUP]] = seen
        return found

    # Progress

    def _progress(self, batches: Batches, figures: dict[str, Any], decision: dict[str, Any]) -> None:
        for name, tracker in self.trackers.items():
            seen: Mapping[str | None, Seen] = {}
            if name in batches and tracker.rule.by:
                seen = figures["groups"].get(name, {})
            elif name in batches:
                seen = {None: _seen(*(figures.get(figure(name, f)) for f in ("rows", "highest", "punctuated", RANKED)))}
            tracker.observe(seen, decision["now"], held=decision["held"])
            if name in decision["ended"]:
                tracker.end()

    def _told(self, manifest: Manifest, now: int) -> Punctuated:
        """The punctuation of the flow's own streams. What closes windows may not be taken back."""
        for tracker in self.trackers.values():
            tracker.punctuation(now)
        self._propagated = self.punctuation(now, manifest.ended)
        idle = {name for name, tracker in self.trackers.items() if tracker.is_idle(now)}
        streams: dict[str, Punctuation | Reached] = dict(self._propagated)
        for name in self.numbered:
            p = self._propagated.get(name)
            at: dict[str, Punctuation] = {ROW_NUM: manifest.numbered.get(name, 0)}
            if name in self.trackers:
                at[self.trackers[name].rule.attr] = p
            streams[name] = Reached(at, p == math.inf, name in idle)
        return Punctuated(streams, idle)

    def _highest(self, manifest: Manifest, figures: Mapping[str, Any]) -> dict[str, Any]:
        found = {}
        for watch in self._watches:
            seen = from_spark(figures.get(figure(watch.stream, "highest")))
            if seen is not None:
                found[watch.stream] = written(furthest((read(manifest.highest.get(watch.stream)), seen)))
        return found

    # Close

    def _looked_up(self, level: Level, batches: Batches, tables: Mapping[str, DataFrame]) -> dict[str, Any]:
        """The tuples of a batch, with those that stages of a level look up in tables, as streams of their own."""
        found = dict(batches)
        for name, stage in level.looking_up.items():
            if set(stage.streams) & found.keys():
                found[name] = [lower(stage.plan, {**self._inputs(stage.streams, found), **tables})]
        return found

    def _inputs(self, streams: Iterable[str], batches: Batches) -> dict[str, DataFrame]:
        """The tuples of streams in a batch; of one without any, its columns."""
        return {s: sound(batches.get(s, [self._frames[s]]), self._good.get(s)) for s in streams}

    def _close(
        self,
        level: Level,
        batches: Batches,
        manifest: Manifest,
        closings: Mapping[str, Closing],
        new: Mapping[str, DataFrame],
        left_out: LeftOut,
    ) -> dict[str, int]:
        """Answers the windows that close, and passes on the tuples of stages without one; gives the rows by stage."""
        parts = []
        if closings:
            files = self._state.needed(manifest, level, closings)
            fates = self.shedding.fates(level, closings)
            if files and (rows := answers(self._state.read(level, files), level.tables, closings, fates)) is not None:
                parts.append(rows)
        for name, stage in level.passing_on.items():
            if set(stage.streams) & set(batches):
                rate, tuples = left_out.sampling.rate(stage.query), left_out.of(stage.query, batches)
                rows = answer(stage.plan, self._inputs(stage.streams, tuples))
                rows = rows.withColumn(SAMPLING_RATE, F.col(SAMPLING_RATE) * F.lit(rate))
                parts.append(rows.select(F.struct("*").alias(name)))
        for name, stage in level.holding.items():
            if (found := self._keeping.decided(stage, self.manifest, manifest, new)) is not None:
                parts.append(found.select(F.struct("*").alias(name)))
        counts = self._write(parts, sum(self.reports[-1].answers.values()) if self.reports else None)
        reach("closed")
        return counts

    def _pairs(self, level: Level, new: Mapping[str, DataFrame]) -> list[DataFrame]:
        """The pairs of the joins of a level, which need no punctuation, each in a column of its own."""
        pairs = {name: self._keeping.pairs(stage, self.manifest, new) for name, stage in level.joining.items()}
        return [df.selectExpr(f"struct(*) AS {quoted(name)}") for name, df in pairs.items() if df is not None]

    def _write_pairs(self, pairs: Sequence[DataFrame]) -> dict[str, int]:
        """Writes pairs, and gives how many there are by stage."""
        # They are found by the tasks that write them: all that may meet counts, however little comes of it.
        kept, last = sum(f.rows for f in self.manifest.tuples), self.reports[-1:]
        counts = self._write(pairs, kept + last[0].rows if last else None)
        reach("matched")
        return counts

    def _write(self, parts: Sequence[DataFrame], expected: int | None) -> dict[str, int]:
        """Writes the answers of stages, and gives how many there are."""
        written = self._answers.write(parts, self.batch, expected, looked_at=self._overload is not None)
        self._outlooks |= written.outlooks
        return written.counts

    def _stream(self, stage: str) -> DataFrame:
        """The answers of a stage in this batch, as the stream that the next one reads."""
        if stage in self.shedding.joins.estimated.values():
            return self.answers(stage, self.batch).withColumnRenamed(SAMPLING_RATE, TAKEN_AT.plain)
        return self.answers(stage, self.batch).drop(SAMPLING_RATE)

    @property
    def _behind_joins(self) -> Sampling:
        """What is left out of the answers of stages: nothing, but pairs of joins may have been sampled."""
        return Sampling({}, self.batch, weighed=frozenset(self.shedding.joins.estimated))

    # Deliver

    def _deliver(self, given: Mapping[str, int]) -> None:
        self.check_alone()
        for outlet in self.outlets:
            if outlet.output == "answers" and given.get(outlet.of):
                with failing(outlet):
                    outlet.sink.deliver(self.answers(outlet.of, self.batch), outlet.of, self.batch)

    def answers(self, query: str, batch: int) -> DataFrame:
        """The answers of a query, or of one of its stages, from one batch."""
        return self._answers.given(query, batch)

    # Commit

    def _clean(self, given: Mapping[str, int]) -> None:
        """Deletes what the batch needed and nobody will, also what a crash kept an earlier batch from deleting."""
        if any(self.keeps(query) for query in self.queries):
            if not self.reports:
                self._answers.clean(self.manifest)
            self._answers.keep(self.manifest.batch, [q for q in given if self.keeps(q) and given[q]])
        else:
            self._answers.clear()
        self._state.clean(self.manifest)
        self._tuples.clean(self.manifest)
        for decision in self._decisions.files():
            self._decisions.delete(decision.name)


class _Stopwatch:
    def __init__(self, clock: Clock) -> None:
        self._clock, self.laps = clock, dict[str, float]()
        self._since = clock.elapsed()

    def lap(self, name: str) -> None:
        now = self._clock.elapsed()
        self.laps[name], self._since = now - self._since, now


def _known(samples: Mapping[str, Sample]) -> dict[str, Any]:
    """What footers have told of streams."""
    return {name: value for own in samples.values() for name, value in (own.figures or {}).items()}


def _is_known(sample: Sample | None) -> bool:
    return sample is not None and sample.figures is not None


def _seen(rows: int | None, highest: Any, punctuated: Any, ranked: Sequence[Any] | None) -> Seen:
    places = (from_spark(place) for place in ranked or ())
    return Seen(rows or 0, from_spark(highest), from_spark(punctuated), [p for p in places if p is not None])


def _asked(tracker: Tracker, now: int) -> Punctuation:
    """The punctuation of a stream at a time; asking changes nothing."""
    return Tracker.restored(tracker.rule, tracker.state()).punctuation(now)
