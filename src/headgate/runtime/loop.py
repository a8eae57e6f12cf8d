"""The micro-batch loop: decide, ingest, progress, close, deliver, commit.

Nothing is kept in memory that the manifest does not have. A batch that a crash cuts off is run again from its
decision, onto the same file names, so it happens once however often it is begun.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from headgate.errors import StateError
from headgate.operators.closing import Closing, answers
from headgate.operators.compaction import compacted
from headgate.operators.ingest import (
    FIGURES_OBSERVED,
    GROUP,
    MALFORMED,
    NO_TABLE,
    PANE,
    TABLE,
    Watch,
    figure,
    ingested,
    kept_columns,
    observation,
    partial_rows,
)
from headgate.operators.sql import literal, position, quoted, stacked, text
from headgate.operators.tables import shared_tables
from headgate.progress import Punctuation, Rule, Seen, Tracker, closed, coarsened, punctuation
from headgate.runtime.evaluate import answer
from headgate.runtime.failures import plain_errors
from headgate.runtime.faults import reach
from headgate.runtime.folder import Folder
from headgate.runtime.manifest import Manifest, Manifests, StateFiles, batch_name, sealed, whole
from headgate.runtime.sinks import MemorySink, Sink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.operators.tables import Table
    from headgate.plan.continuous import Continuous
    from headgate.windows import Number

#: The tuples of a batch by stream, in pieces.
Batches = Mapping[str, Sequence[DataFrame]]
#: What a malformed record is called where bad tuples are delivered.
RECORD = "record"
#: Folders of state that are merged into one once there are this many.
_FOLDERS = 8
#: A task, and so a file, more for each of so many rows: small files cost more to open than to read.
_ROWS_A_FILE = 50_000
#: Up to so many rows of state are merged by one task: with two of them a shuffle would cost more than it saves.
_ROWS_A_TASK = 100_000


@dataclass(frozen=True)
class Outlet:
    """A sink of a query's answers, or of the tuples that came too late for it, or of a stream's bad ones."""

    of: str
    sink: Sink
    output: str = "answers"


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


class Loop:
    """Runs the batches of a flow, one at a time."""

    def __init__(
        self,
        spark: SparkSession,
        checkpoint: str,
        schemas: Mapping[str, StructType],
        rules: Mapping[str, Rule | None],
        queries: Mapping[str, Continuous],
        texts: Mapping[str, str],
        outlets: Sequence[Outlet],
    ) -> None:
        self.spark, self.queries, self.outlets, self._rules = spark, queries, outlets, rules
        self.root = Folder(spark, checkpoint)
        self._manifests = Manifests(self.root / "commits")
        self._decisions = self.root / "decisions"
        self.manifest = self._manifests.last()
        if self.manifest.batch >= 0 and self.manifest.queries != dict(texts):
            raise StateError(_changed(self.manifest.queries, texts, checkpoint))
        self.manifest = replace(self.manifest, queries=dict(texts))
        self._frames = {name: _empty(spark, schema) for name, schema in schemas.items()}
        self.tables: list[Table] = shared_tables([q for q in queries.values() if q.aggregate is not None], self._frames)
        self.trackers = {
            name: Tracker.restored(rule, self.manifest.progress[name])
            if name in self.manifest.progress
            else Tracker(rule)
            for name, rule in rules.items()
            if rule is not None
        }
        self.reports: list[BatchReport] = []
        self._propagated: dict[str, Punctuation] = {}
        self._columns: dict[frozenset[str], list[str]] = {}
        """What is kept of the tuples of some streams, as to ask Spark for it takes long."""

    @property
    def batch(self) -> int:
        """The number of the batch that is run, or would be."""
        return self.manifest.batch + 1

    def pending(self) -> dict[str, Any] | None:
        """The decision of a batch that was begun and not committed."""
        return whole(self._decisions.read(batch_name(self.batch)))

    def run(self, batches: Batches, source_batch: int | None, ended: Sequence[str] = ()) -> None:
        """Runs one batch over the tuples of some streams; `ended` are the streams that are over with it."""
        watch = _Stopwatch()
        # The time that passed while the flow was down is not time in which its sources were quiet.
        held = not self.reports
        decision = self._decide({"source_batch": source_batch, "ended": list(ended), "now": _now(), "held": held})
        with plain_errors():
            watch.lap("decide")
            manifest, figures = self._ingest(batches)
            watch.lap("ingest")
            self._progress(batches, figures, decision)
            late, bad = self._late(batches, figures), self._bad(batches, figures)
            watch.lap("progress")
            manifest = replace(manifest, ended=sorted({*manifest.ended, *decision["ended"]}))
            now_closed = self._closed(manifest, decision["now"])
            closings = self._closings(manifest, now_closed)
            given = self._close(batches, manifest, closings)
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
            closed=now_closed,
        )
        for what, counts in {"rows": rows, "answers": given, "late": late, "bad": bad}.items():
            manifest = manifest.counted(what, counts)
        with plain_errors():
            manifest = self._compacted(self._purged(manifest))
        watch.lap("compact")
        self._manifests.commit(manifest)
        reach("committed")
        self.manifest = manifest
        self._clean(given)
        watch.lap("commit")
        report = BatchReport(
            manifest.batch, sum(rows.values()), watch.laps, given, late, manifest.state_rows, manifest.state_bytes
        )
        self.reports = [*self.reports[-99:], report]

    @cached_property
    def reads(self) -> dict[str, int]:
        """How often each stream is read in a batch: once for each set of keys, and for each query that passes it on."""
        reduced = Counter(feed.stream for table in self.tables for feed in table.feeds)
        passed_on = Counter(s for query in self.queries.values() if query.aggregate is None for s in query.streams)
        by_group = Counter(watch.stream for watch in self._watches if watch.by is not None)
        # How many tuples came, and how far they got, is told by a table, or else by a look of its own.
        return {name: (reduced[name] or 1) + passed_on[name] + by_group[name] for name in self._frames}

    def has_ended(self, stream: str) -> bool:
        """Whether a bounded stream has been read."""
        return stream in self.manifest.ended

    def is_due(self) -> bool:
        """Whether time alone has brought punctuation that closes windows."""
        due = bool(self.manifest.files) and self.punctuation(_now()) != self._propagated
        return due and self.pending() is None

    def punctuation(self, now: int, ended: Sequence[str] = ()) -> dict[str, Punctuation]:
        """The punctuation of each stream at a time, no finer than the windows over it; asking changes nothing."""
        found: dict[str, Punctuation] = dict.fromkeys((*self.manifest.ended, *ended), math.inf)
        for name, tracker in self.trackers.items():
            windows = [q.window for q in self.queries.values() if q.aggregate is not None and name in q.streams]
            asked = Tracker.restored(tracker.rule, tracker.state())
            found[name] = coarsened(asked.punctuation(now), windows)
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
        folder = self.root / "answers"
        paths = [f"{folder.path}/{name}" for name in folder.folders() if int(name) <= self.manifest.batch]
        schema = answer(self.queries[query].plan, self._frames).schema
        if not paths:
            return _empty(self.spark, schema)
        return _answers_of(query, self.spark.read.schema(StructType([StructField(query, schema)])).parquet(*paths))

    def explain(self) -> str:
        """The tables of partials, and the queries that share them."""
        lines = []
        for table in self.tables:
            queries = ", ".join(m.query.name for m in table.members)
            feeds = "; ".join(f"{f.stream} by {', '.join(f.keys) or 'nothing'}" for f in table.feeds)
            lines.append(
                f"table {table.number}: {feeds}; panes of {table.length}; {len(table.columns)} partials; for {queries}"
            )
        return "\n".join(lines)

    # Decide

    def _decide(self, decision: dict[str, Any]) -> dict[str, Any]:
        """What this batch is about, written down before anything is done; a batch that is run again keeps to it."""
        known = self.pending()
        if known is not None:
            return known
        self._decisions.write(batch_name(self.batch), sealed(decision))
        reach("decided")
        return decision

    # Ingest

    def _ingest(self, batches: Batches) -> tuple[Manifest, dict[str, Any]]:
        """Adds the partial rows of a batch to the state, and gives the figures of its streams."""
        if not batches:
            return self.manifest, {}
        watches = [w for w in self._watches if w.stream in batches]
        figures = self._ingested(batches, watches, {})
        if any(self._late_for(w.stream, figures) for w in watches):
            # Rare, so it may cost a second pass.
            figures |= self._ingested(batches, watches, self._late_before)
        reach("ingested")
        figures["groups"] = self._groups(watches)
        if not figures.get("panes"):
            return self.manifest, figures
        written = self._written(self._folder("state"), figures["first"], figures["last"], figures["panes"])
        return replace(self.manifest, files=(*self.manifest.files, written)), figures

    def _ingested(self, batches: Batches, watches: Sequence[Watch], late: Mapping[str, Number]) -> dict[str, Any]:
        rows = ingested(batches, self.tables, watches, late)
        observed = Observation()
        streams = frozenset(batches)
        if streams not in self._columns:
            self._columns[streams] = kept_columns(rows.columns)
        columns = self._columns[streams]
        watched = rows.observe(observed, observation(watches, panes=PANE in columns))
        kept = partial_rows(watched, columns)
        if kept is None:
            watched.write.format("noop").mode("overwrite").save()
        else:
            self._write(kept, self._folder("state"))
        figures: dict[str, Any] = observed.get[FIGURES_OBSERVED].asDict()
        return figures

    def _late_for(self, stream: str, figures: Mapping[str, Any]) -> dict[str, Number]:
        """The queries that a stream has brought late tuples for, with the place below which they are late."""
        lowest = _place(figures[figure(stream, "lowest")])
        if lowest is None:
            return {}
        bounds = self._late_before.items()
        return {name: bound for name, bound in bounds if stream in self.queries[name].streams and lowest < bound}

    def _folder(self, kind: str) -> str:
        """Where this batch puts what it makes."""
        return f"{kind}/{batch_name(self.batch)}"

    def _write(self, rows: DataFrame, folder: str, expected: int | None = None) -> None:
        """Writes rows to a folder, with one task a core, or fewer where few rows are expected."""
        cores = self.spark.sparkContext.defaultParallelism
        tasks = cores if expected is None else min(cores, 1 + expected // _ROWS_A_FILE)
        # The manifest is the commit: what Spark's committer does beyond moving files in would be of no use.
        options = {
            "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
            "mapreduce.fileoutputcommitter.algorithm.version": "2",
            "compression": "zstd",
        }
        (self.root / folder).prepare()
        rows.coalesce(tasks).write.mode("append").options(**options).parquet(f"{self.root.path}/{folder}")

    def _written(self, folder: str, first: float, last: float, rows: int, level: int = 0) -> StateFiles:
        """What the manifest says of a folder that was written."""
        files = (self.root / folder).files()
        return StateFiles(folder, tuple(f.name for f in files), first, last, rows, sum(f.size for f in files), level)

    @cached_property
    def _watches(self) -> list[Watch]:
        return [
            Watch(name, rule.attr, rule.punctuated_by, rule.by, self._marks_malformed(name))
            if rule
            else Watch(name, None, marked=self._marks_malformed(name))
            for name, rule in self._rules.items()
        ]

    def _marks_malformed(self, stream: str) -> bool:
        return MALFORMED in self._frames[stream].columns

    @property
    def _late_before(self) -> dict[str, Number]:
        """For each query the end of the last window that was closed: a tuple below it is late."""
        return {name: self.queries[name].window.bounds(last)[1] for name, last in self.manifest.closed.items()}

    def _groups(self, watches: Sequence[Watch]) -> dict[str, dict[str | None, Seen]]:
        """How far each group of the streams that keep progress by group got."""
        if all(w.by is None for w in watches):
            return {}
        state = self.spark.read.parquet(f"{self.root.path}/{self._folder('state')}")
        rows = state.where(f"{TABLE} = {NO_TABLE}").collect()
        found: dict[str, dict[str | None, Seen]] = {}
        for row in rows:
            seen = _seen(row[f"{GROUP}_rows"], row[f"{GROUP}_highest"], row[f"{GROUP}_punctuated"])
            found.setdefault(row[f"{GROUP}_stream"], {})[row[GROUP]] = seen
        return found

    # Progress

    def _progress(self, batches: Batches, figures: dict[str, Any], decision: dict[str, Any]) -> None:
        for name, tracker in self.trackers.items():
            seen: Mapping[str | None, Seen] = {}
            if name in batches and tracker.rule.by:
                seen = figures["groups"].get(name, {})
            elif name in batches:
                seen = {None: _seen(*(figures[figure(name, f)] for f in ("rows", "highest", "punctuated")))}
            tracker.observe(seen, decision["now"], held=decision["held"])
            if name in decision["ended"]:
                tracker.end()

    def _closed(self, manifest: Manifest, now: int) -> dict[str, int]:
        """The last window of each query that punctuation has closed. What is closed stays so."""
        for tracker in self.trackers.values():
            tracker.punctuation(now)  # What closes windows may not be taken back.
        streams = self._propagated = self.punctuation(now, manifest.ended)
        idle = frozenset(name for name, tracker in self.trackers.items() if tracker.is_idle(now))
        found = dict(manifest.closed)
        for name, query in self.queries.items():
            if query.aggregate is None:
                continue
            last = closed(query.window, punctuation(query.aggregate.input, streams, idle))
            if last == math.inf:
                last = _window_of(manifest.highest, query.window) + 1 if manifest.files else None
            if last is not None:
                found[name] = max(int(last), found.get(name, int(last)))
        return found

    def _closings(self, manifest: Manifest, now_closed: Mapping[str, int]) -> dict[str, Closing]:
        """The windows that have been closed since the last batch, as far as there is anything in them."""
        closings = {}
        for name, last in now_closed.items():
            window, before = self.queries[name].window, manifest.closed.get(name)
            if last == before or not manifest.files:
                continue
            first = _window_of(manifest.lowest - float(window.range), window)
            first = first if before is None else max(first, before + 1)
            last = min(last, _window_of(manifest.highest, window) + 1)
            if first <= last:
                closings[name] = Closing(first, last)
        return closings

    def _late(self, batches: Batches, figures: dict[str, Any]) -> dict[str, int]:
        """Counts late tuples by query and delivers them to those who asked: a job of its own, if there are any."""
        late: dict[str, int] = {}
        for stream, pieces in batches.items():
            bounds = self._late_for(stream, figures)
            if not bounds:
                continue
            df = self._sound(stream, pieces)
            conditions = {name: self._is_late(df, self.queries[name], stream, b) for name, b in bounds.items()}
            counts = df.agg(*(F.expr(f"count_if({c})").alias(n) for n, c in conditions.items())).first()
            assert counts is not None
            for name, count in counts.asDict().items():
                late[name] = late.get(name, 0) + count
                for outlet in self.outlets:
                    if count and outlet.output == "late" and outlet.of == name:
                        outlet.sink.deliver(df.where(conditions[name]), f"{name}-late-{stream}", self.batch)
        return late

    def _bad(self, batches: Batches, figures: dict[str, Any]) -> dict[str, int]:
        """Counts bad tuples by stream and delivers them to those who asked, malformed ones with their record."""
        counts = {name: figures.get(figure(name, "bad")) or 0 for name in batches}
        for watch in self._watches:
            if not counts.get(watch.stream):
                continue
            for outlet in self.outlets:
                if outlet.output == "bad" and outlet.of == watch.stream:
                    df = _whole(batches[watch.stream])
                    rows = df.where(watch.is_bad(df)).withColumnRenamed(MALFORMED, RECORD)
                    outlet.sink.deliver(rows, f"{watch.stream}-bad", self.batch)
        return counts

    def _sound(self, stream: str, pieces: Sequence[DataFrame]) -> DataFrame:
        """The tuples of a stream in a batch, without malformed records."""
        df = _whole(pieces)
        return df.where(f"{MALFORMED} IS NULL").drop(MALFORMED) if self._marks_malformed(stream) else df

    def _is_late(self, df: DataFrame, query: Continuous, stream: str, bound: Any) -> str:
        conditions = []
        for feed in query.feeds:
            if feed.stream == stream:
                attribute = feed.columns[query.window.attr]
                below = f"{position(df, attribute.name)} < {literal(bound)}"
                conditions.append(below if feed.where is None else f"({below}) AND ({text(feed.where)})")
        return " OR ".join(f"({c})" for c in conditions)

    # Close

    def _close(self, batches: Batches, manifest: Manifest, closings: Mapping[str, Closing]) -> dict[str, int]:
        """Answers the windows that close, and passes on the tuples of queries without one; gives the rows by query."""
        folder = self._folder("answers")
        parts = []
        if closings:
            files = self._needed(manifest, closings)
            if files and (rows := answers(self._state(files), self.tables, closings)) is not None:
                parts.append(rows)
        for name, query in self.queries.items():
            if query.aggregate is None and set(query.streams) & set(batches):
                frames = {s: self._sound(s, batches.get(s, [self._frames[s]])) for s in query.streams}
                parts.append(answer(query.plan, frames).select(F.struct("*").alias(name)))
        if not parts:
            return {}
        whole_answer = stacked(parts)
        observed = Observation()
        counts = ", ".join(f"count({quoted(c)}) AS {quoted(c)}" for c in whole_answer.columns)
        expected = sum(self.reports[-1].answers.values()) if self.reports else None
        self._write(whole_answer.observe(observed, F.expr(f"struct({counts})").alias("answers")), folder, expected)
        reach("closed")
        return {name: int(count) for name, count in observed.get["answers"].asDict().items()}

    def _needed(self, manifest: Manifest, closings: Mapping[str, Closing]) -> list[StateFiles]:
        """The files with panes of closing windows."""
        spans = []
        for name, closing in closings.items():
            window = self.queries[name].window
            spans.append((float(window.bounds(closing.first)[0]), float(window.bounds(closing.last)[1])))
        first, last = min(s for s, _ in spans), max(e for _, e in spans)
        return [f for f in manifest.files if f.last >= first - self._longest_pane and f.first < last]

    @cached_property
    def _longest_pane(self) -> float:
        return max((float(t.length) for t in self.tables), default=0.0)

    def _state(self, files: Sequence[StateFiles]) -> DataFrame:
        paths = [f"{self.root.path}/{path}" for f in files for path in f.paths]
        state = self.spark.read.schema(self._state_schema).parquet(*paths)
        return state.coalesce(1) if sum(f.rows for f in files) <= _ROWS_A_TASK else state

    @cached_property
    def _state_schema(self) -> StructType:
        frames = {name: [frame] for name, frame in self._frames.items()}
        rows = ingested(frames, self.tables, [replace(w, by=None) for w in self._watches], {})
        kept = partial_rows(rows, kept_columns(rows.columns))
        assert kept is not None
        return kept.schema

    # Deliver

    def _deliver(self, given: Mapping[str, int]) -> None:
        for outlet in self.outlets:
            if outlet.output == "answers" and given.get(outlet.of):
                outlet.sink.deliver(self.answers(outlet.of, self.batch), outlet.of, self.batch)

    def answers(self, query: str, batch: int) -> DataFrame:
        """The answers of a query from one batch."""
        return _answers_of(query, self.spark.read.parquet(f"{self.root.path}/answers/{batch_name(batch)}"))

    # Commit

    def _purged(self, manifest: Manifest) -> Manifest:
        """The manifest without files that no window to come can need."""
        starts = []
        for name, query in self.queries.items():
            if query.aggregate is not None:
                last = manifest.closed.get(name)
                starts.append(-math.inf if last is None else float(query.window.bounds(last + 1)[0]))
        needed = min(starts, default=-math.inf) - self._longest_pane
        return replace(manifest, files=tuple(f for f in manifest.files if f.last >= needed))

    def _compacted(self, manifest: Manifest) -> Manifest:
        """The manifest with folders of one level merged into one of the next, where they have become many."""
        for level in range(1 + max((f.level for f in manifest.files), default=0)):
            many = [f for f in manifest.files if f.level == level]
            if len(many) >= _FOLDERS:
                merged = self._merged(many, level + 1, manifest)
                kept = tuple(f for f in manifest.files if f.level != level)
                manifest = replace(manifest, files=(*merged, *kept))
                reach("compacted")
        return manifest

    def _merged(self, many: Sequence[StateFiles], level: int, manifest: Manifest) -> list[StateFiles]:
        folder = f"{self._folder('state')}-{level}"
        observed = Observation()
        rows = compacted(self._state(many), self.tables, self._first_panes(manifest))
        counted = rows.observe(observed, F.count("*").alias("rows"))
        self._write(counted, folder, expected=sum(f.rows for f in many))
        found = observed.get["rows"]
        first, last = min(f.first for f in many), max(f.last for f in many)
        return [self._written(folder, first, last, found, level)] if found else []

    def _first_panes(self, manifest: Manifest) -> dict[int, int]:
        """The first pane of each table that a window still to be closed may hold."""
        first = {}
        for table in self.tables:
            windows = [(m.query.window, manifest.closed.get(m.query.name)) for m in table.members]
            if all(last is not None for _, last in windows):
                first[table.number] = min(
                    (last + 1) * table.panes(w).per_slide for w, last in windows if last is not None
                )
        return first

    def _clean(self, given: Mapping[str, int]) -> None:
        """Deletes what the manifest does not name, also what a crash kept an earlier batch from deleting."""
        named = {f.folder for f in self.manifest.files}
        if not any(self.keeps(query) for query in self.queries):
            (self.root / "answers").delete()
        elif not any(count for query, count in given.items() if self.keeps(query)):
            (self.root / f"answers/{batch_name(self.manifest.batch)}").delete()
        for name in (self.root / "state").folders():
            if f"state/{name}" not in named:
                (self.root / f"state/{name}").delete()
        for decision in self._decisions.files():
            self._decisions.delete(decision.name)


class _Stopwatch:
    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._since = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name], self._since = now - self._since, now


def _empty(spark: SparkSession, schema: StructType) -> DataFrame:
    # Not by createDataFrame, which would make this session the active one of the caller.
    columns = (f"CAST(NULL AS {f.dataType.simpleString()}) AS {quoted(f.name)}" for f in schema)
    return spark.range(0).selectExpr(*columns)


def _answers_of(query: str, rows: DataFrame) -> DataFrame:
    return rows.where(f"{quoted(query)} IS NOT NULL").select(f"{quoted(query)}.*")


def _whole(pieces: Sequence[DataFrame]) -> DataFrame:
    return reduce(DataFrame.union, pieces)


def _window_of(place: float, window: Any) -> int:
    """The last window that begins at this place or before."""
    return math.floor((place - float(window.origin)) / float(window.slide))


def _seen(rows: int | None, highest: Any, punctuated: Any) -> Seen:
    return Seen(rows or 0, _place(highest), _place(punctuated))


def _place(value: Any) -> Number | None:
    return Fraction(value) if isinstance(value, Decimal) else value


def _now() -> int:
    return time.time_ns() // 1000


def _changed(known: Mapping[str, str], asked: Mapping[str, str], checkpoint: str) -> str:
    names = sorted(name for name in {*known, *asked} if known.get(name) != asked.get(name))
    return (
        f"the checkpoint {checkpoint} is of a flow with other queries (see {', '.join(names)}): run it with the queries"
        " it was started with, or start with a new checkpoint"
    )
