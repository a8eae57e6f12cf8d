"""A flow: named streams, the queries over them, and where their answers go."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from os import PathLike
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp

from headgate import given
from headgate.api.evaluate import as_strategy, as_tree, check_session
from headgate.api.run import Run, as_trigger, check_output
from headgate.batch.clock import SYSTEM_CLOCK, Clock
from headgate.batch.engine import Engine
from headgate.batch.outlet import Outlet
from headgate.batch.prepare import Preparation
from headgate.batch.program import Definition
from headgate.connect.adapt import as_input, as_sink
from headgate.connect.files.columns import columns_of
from headgate.connect.inputs import Inputs
from headgate.connect.sinks import parquet
from headgate.connect.tables import Tables
from headgate.errors import BindError, FlowError
from headgate.incremental.reduce import MALFORMED
from headgate.lang import Query, normal_text
from headgate.observe.broadcast import Listeners
from headgate.observe.explain import promise
from headgate.observe.words import Text
from headgate.plan import Catalog, Field, Strategy, bind
from headgate.plan import Source as SourceNode
from headgate.plan.logical.catalog import did_you_mean, names_read
from headgate.plan.logical.explain import explain_query, explain_sink, explain_stream
from headgate.plan.logical.needed import inputs_needed
from headgate.plan.stream.stages import continuous
from headgate.progress import StreamProgress
from headgate.shed.builtin import exact
from headgate.shed.controller import Overload
from headgate.shed.fit import check_tuples_shed, loss_of
from headgate.shed.join.sql import RESERVED
from headgate.shed.policy import Policy, as_policy
from headgate.spark.failures import plain_errors
from headgate.spark.folder import Folder
from headgate.store.checkpoint import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from headgate.connect.files.source import Files
    from headgate.connect.input import Input
    from headgate.observe.delivery import Listening
    from headgate.plan.logical.nodes import Node
    from headgate.plan.stream.stages import Continuous


#: On a local disk Hadoop starts a process for every file and folder that it makes, to set its permissions, and more of
#: them for a file of checksums beside it, and for the logs of Spark's streams: a fifth of the time of a small batch.
_LOCAL_DISK = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    # Hadoop would go on with the file system that the caller's session has opened.
    "fs.file.impl.disable.cache": "true",
}


class Flow:
    """Continuous queries over streams, run together.

    >>> import headgate as hg, tempfile
    >>> spark = hg.session()
    >>> bids = spark.createDataFrame([(5, 1), (7, 2), (3, 3), (9, 4)], "price INT, ts INT")
    >>> flow = hg.Flow(spark, name="auction", checkpoint=tempfile.mkdtemp())
    >>> flow.stream("bids", bids, progress=hg.progress("ts", ordered=True))
    >>> flow.query("top", "SELECT max(price) AS top [RANGE 2, SLIDE 2] FROM bids")
    >>> run = flow.run_available()
    >>> run.results("top").orderBy("window_start").show()
    +---+------------+----------+-------------+
    |top|window_start|window_end|sampling_rate|
    +---+------------+----------+-------------+
    |  5|           0|         2|          1.0|
    |  7|           2|         4|          1.0|
    |  9|           4|         6|          1.0|
    +---+------------+----------+-------------+
    <BLANKLINE>
    """

    @given.checked("hg.Flow")
    def __init__(self, spark: SparkSession, name: str, checkpoint: str | PathLike[str]) -> None:
        check_session("hg.Flow", spark)
        self.name = _name_of_flow(name)
        self.checkpoint = _checkpoint(checkpoint)
        # A session of its own: the settings that suit small batches must not change those of the caller.
        self._caller, self._spark = spark, _clone(spark, self.checkpoint)
        self._sources: dict[str, Input] = {}
        self._schemas: dict[str, StructType] = {}
        self._rules: dict[str, StreamProgress | None] = {}
        self._queries: dict[str, Continuous] = {}
        self._texts: dict[str, str] = {}
        self._read: dict[str, list[str]] = {}
        self._policies: dict[str, Policy] = {}
        self._outlets: list[Outlet] = []
        self._tables = Tables(self._spark)
        self._anew: set[str] = set()
        self._overload: Overload | None = None
        self._clock: Clock = SYSTEM_CLOCK
        self._listeners = Listeners()

    @given.checked("flow.stream")
    def stream(self, name: str, source: Input | DataFrame, progress: StreamProgress | None = None) -> None:
        """Adds a stream and how it progresses: one of `hg.sources`, an `hg.Source` of your own, or a DataFrame."""
        _new("stream", name, self._sources)
        _new("table", name, self._tables.sources)
        found = as_input(name, source)
        if progress is not None and not isinstance(progress, StreamProgress):
            raise given.refused(f"stream {name}: progress", progress, "hg.progress('ts', within='10 seconds')")
        schema = columns_of(found.schema(self._spark))
        if taken := sorted(name for name in schema.names if name.lower() in RESERVED):
            raise BindError(f"stream {name}: {taken[0]} is what Headgate calls a column of its own: rename that one")
        if progress is not None:
            for column in progress.columns:
                if column not in schema.names:
                    hint = did_you_mean(column, [name for name in schema.names if name != MALFORMED])
                    raise BindError(f"progress of stream {name}: there is no column {column}; {hint}")
            marks = progress.rule.needs.marked_by
            if marks is not None and (kind := schema[marks].dataType.simpleString()) != "boolean":
                raise BindError(f"progress of stream {name}: punctuated_by={marks!r} is {kind}: give a boolean column")
            progress = progress.over(schema[progress.attr].dataType.simpleString())
        self._sources[name], self._schemas[name], self._rules[name] = found, schema, progress

    @given.checked("flow.table")
    def table(self, name: str, source: Files | DataFrame) -> None:
        """Adds a table that tuples of streams can be joined with: `hg.sources.files`, or a bounded DataFrame.

        It has no window, and is read as it is when a batch runs; files are read anew when they change.
        """
        _new("table", name, self._tables.sources)
        _new("stream", name, self._sources)
        with plain_errors():
            self._tables.add(name, source)

    @given.checked("flow.query")
    def query(
        self,
        name: str,
        sql: str | Query | exp.Query,
        policy: Policy | None = None,
        strategy: Strategy | None = None,
        anew: bool = False,
    ) -> None:
        """Adds a query over streams, and over other queries; `strategy` ("eager" or "paned") overrides the planner.

        A query that the checkpoint does not know yet answers from its first whole window on, one that it knows goes on.
        With `anew`, a query of this name that the checkpoint knows otherwise, by its text or by the types of the
        columns that it uses, is forgotten.
        """
        _new("query", name, self._queries)
        ast = as_tree(f"query {name}", sql, BindError)
        promise = as_policy(f"query {name}", policy, exact())
        strategy = as_strategy(f"query {name}", strategy, FlowError)
        given.flag(f"query {name}: anew", anew)
        try:
            plan = bind(ast, self._catalog())
        except BindError as error:
            raise type(error)(f"query {name}: {error}") from None
        bounded = [name for name, source in self._sources.items() if source.bounded]
        query = continuous(name, plan, strategy, bounded)
        loss = loss_of(query, promise)
        self._queries[name], self._policies[name] = query, promise
        read = {n.lower() for n in names_read(ast)}
        self._read[name] = [q for q in self._readable() if q != name and q.lower() in read]
        # Another answer of what it reads is another answer of its own.
        # A policy may change its numbers, but what is kept depends on its loss.
        texts = (f"{normal_text(ast)} {loss.kept_as}", *(self._texts[q] for q in self._read[name]))
        self._texts[name] = "; ".join(texts)
        if anew:
            self._anew.add(name)

    @given.checked("flow.drop")
    def drop(self, name: str) -> None:
        """Takes a query away, with its sinks; the state that only it needs is freed."""
        if not isinstance(name, str) or name not in self._queries:
            hint = did_you_mean(str(name), self._queries)
            raise FlowError(f"there is no query {given.named(name)} in the flow: {hint}")
        if readers := [q for q, read in self._read.items() if name in read]:
            raise FlowError(f"query {', '.join(readers)} reads {name}: drop it first")
        del self._queries[name], self._texts[name], self._read[name], self._policies[name]
        self._anew.discard(name)
        self._outlets = [o for o in self._outlets if o.of != name or o.output == "bad"]

    @given.checked("flow.sink")
    def sink(self, name: str, sink: object, output: str = "answers") -> None:
        """Sends the answers of a query to a sink: one of `hg.sinks`, an `hg.Sink` of your own, or a function.

        With output="late" it gets the tuples that came too late for the query; with output="bad" and the name of a
        stream, the tuples of the stream that cannot be used: malformed records, and those without a place. With
        output="shed" it gets the tuples that the query's policy left out, which costs another look at the streams.
        """
        check_output(name, output, self._queries, self._sources)
        if output == "shed":
            check_tuples_shed(self._queries[name], self._policies[name])
        taker = as_sink(sink)
        taker.check(self._spark, name)
        if output != "answers" and taker.kept_by_flow:
            taker = parquet(f"{self.checkpoint}/{output}/{name}")
        self._outlets.append(Outlet(name, taker, output))

    @given.checked("flow.listen")
    def listen(self, listener: object) -> Listening:
        """Tells a listener what happens in every run of the flow. `stop()` on what it returns ends that.

        A listener is a function of an event, or an object with methods as `hg.Listener` has them. Each has a thread of
        its own: one that is slow, or raises an error, holds nobody up.
        """
        return self._listeners.add("flow.listen", listener)

    @given.checked("flow.explain")
    def explain(self) -> str:
        """The streams, and each of the queries with its plan, as text."""
        streams = [
            explain_stream(name, source.describe(), promise(self._rules[name]), self._sinks(name, of_stream=True))
            for name, source in self._sources.items()
        ]
        streams += [f"Table {name} from {source.describe()}" for name, source in self._tables.sources.items()]
        queries = [
            explain_query(name, self._properties(query), self._sinks(name), query.plan, query.strategy)
            for name, query in self._queries.items()
        ]
        return Text("\n\n".join(filter(None, ["\n".join(streams), *queries])))

    def _properties(self, query: Continuous) -> list[str]:
        strategy = [f"strategy = '{query.strategy}'"] if query.strategy is not None else []
        return [*filter(None, [self._policies[query.name].describe()]), *strategy]

    def _sinks(self, of: str, of_stream: bool = False) -> list[str]:
        outlets = [o for o in self._outlets if o.of == of and (o.output == "bad") == of_stream]
        return [explain_sink(outlet.sink.describe(), None, outlet.output) for outlet in outlets]

    @given.checked("flow.start")
    def start(self, trigger: str | None = None, overload: Overload | None = None) -> Run:
        """Starts the flow and returns at once; `trigger` is how often a batch runs, such as "5 seconds".

        With trigger="available now" it ends once it has run over everything that is there. With `hg.overload(...)`,
        batches that would take too long are shed as the policies of the queries say.
        """
        pace = as_trigger("flow.start: trigger", trigger)
        return self._run(overload).started(pace)

    @given.checked("flow.run_available")
    def run_available(self, overload: Overload | None = None) -> Run:
        """Runs over everything that is there now, and returns when that is done."""
        return self._run(overload).finished()

    def _run(self, overload: Overload | None = None, clock: Clock = SYSTEM_CLOCK) -> Run:
        if overload is not None and not isinstance(overload, Overload):
            raise given.refused("overload", overload, "hg.overload(target='5 seconds')")
        self._overload, self._clock = overload, clock
        if not self._sources:
            raise FlowError(f"flow {self.name} has no streams: add one with flow.stream(...)")
        if not self._queries:
            raise FlowError(f"flow {self.name} has no queries: add one with flow.query(...)")
        run = Run(self, *self._definition()(None), self._caller)
        self.changed()
        return run

    def changed(self) -> None:
        """Takes note that the queries that there are now run: from here on they are not new any more."""
        self._anew.clear()

    @property
    def names(self) -> list[str]:
        """The names of the queries."""
        return list(self._queries)

    @property
    def numbered(self) -> frozenset[str]:
        """The streams whose tuples have arrival numbers."""
        return frozenset[str]().union(*(query.numbered for query in self._queries.values()))

    def _definition(self) -> Callable[[Engine | None], tuple[Engine, Inputs]]:
        """What makes the engine of the queries that there are now, whatever changes meanwhile.

        Without an engine that runs, it goes on from the checkpoint.
        """
        needed = self._needed()
        parts = (dict(self._queries), dict(self._texts), list(self._outlets), self._tables, frozenset(self._anew))
        policies, overload, clock = dict(self._policies), self._overload, self._clock

        def prepare(running: Engine | None) -> tuple[Engine, Inputs]:
            checkpoint = Checkpoint(Folder(self._spark, self.checkpoint)) if running is None else running.checkpoint
            # What a running flow is at may not be on disk yet, where one change follows another.
            manifest = checkpoint.manifests.last() if running is None else running.manifest
            definition = Definition(dict(self._schemas), dict(self._rules), *parts)
            preparation = Preparation(self._spark, checkpoint, definition, policies, overload, clock)
            inputs = Inputs(self._spark, self._sources, self._schemas, needed, definition.numbered)
            return Engine(preparation, manifest), inputs

        return prepare

    def _catalog(self) -> Catalog:
        streams = []
        for name, schema in self._schemas.items():
            fields = tuple(Field(f.name, f.dataType.simpleString()) for f in schema if f.name != MALFORMED)
            rule = self._rules[name]
            streams.append(SourceNode(name, fields, rule.attr if rule else None))
        for name, schema in self._tables.schemas.items():
            fields = tuple(Field(f.name, f.dataType.simpleString()) for f in schema)
            streams.append(SourceNode(name, fields, table=True))
        catalog = Catalog(streams, self._spark.catalog.functionExists)
        for name in self._readable():
            catalog = catalog.extended(name, self._queries[name].plan)
        return catalog

    def _readable(self) -> list[str]:
        """The queries that others can read: a name stands for a stream or a table first."""
        taken = {name.lower() for name in (*self._schemas, *self._tables.schemas)}
        return [name for name in self._queries if name.lower() not in taken]

    def _needed(self) -> dict[str, list[str]]:
        """The columns of each stream that queries and progress rules read."""
        wanted: dict[str, set[str]] = {name: set() for name in self._sources}
        for query in self._queries.values():
            _collect(query.plan, frozenset(query.plan.types), wanted)
        for name, rule in self._rules.items():
            if rule is not None:
                wanted[name] |= {*rule.columns}
        if any(outlet.output != "answers" for outlet in self._outlets):
            return {name: list(self._schemas[name].names) for name in wanted}
        return {name: [c for c in self._schemas[name].names if c in columns] for name, columns in wanted.items()}


def _collect(node: Node, wanted: frozenset[str], found: dict[str, set[str]]) -> None:
    if isinstance(node, SourceNode):
        found[node.name] |= wanted
    for below, needed in zip(node.inputs, inputs_needed(node, wanted), strict=True):
        _collect(below, needed, found)


def _new(kind: str, name: object, known: Iterable[str]) -> None:
    if not isinstance(name, str) or not name.isidentifier():
        raise FlowError(f"{given.shown(name)} cannot name a {kind}: use letters, digits and _")
    if _folded(name) in map(_folded, known):
        raise FlowError(f"there is a {kind} named {name} already: give this one another name")


def _name_of_flow(name: object) -> str:
    instead = "a name without slashes and line breaks, such as 'netmon'"
    if any(c in "/\\" or not c.isprintable() for c in given.text("hg.Flow: name", name, instead)):
        raise given.refused("hg.Flow: name", name, instead)
    return str(name)


def _checkpoint(place: object) -> str:
    path = given.place("hg.Flow: checkpoint", place)
    return path.rstrip("/") or "/"


def _folded(name: str) -> str:
    """A name without the case of its letters, as Spark has it: letter by letter, whatever the language.

    >>> _folded("Straße"), _folded("ς") == _folded("Σ")
    ('straße', True)
    """
    return "".join((big if len(big := letter.upper()) == 1 else letter).lower()[0] for letter in name)


def _clone(spark: SparkSession, checkpoint: str) -> SparkSession:
    clone = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    # Batches are small and alike: planning a query anew at every shuffle costs more than it gains.
    clone.conf.set("spark.sql.adaptive.enabled", "false")
    # Pieces of one partition each are as many tasks: Spark would have one task do them all.
    clone.conf.set("spark.sql.unionOutputPartitioning", "false")
    # File systems keep checksums of their own, and Spark would write one more file beside every entry of its logs.
    clone.conf.set("spark.sql.streaming.checkpoint.fileChecksum.enabled", "false")
    if Folder(clone, checkpoint).is_local:
        for name, value in _LOCAL_DISK.items():
            clone.conf.set(name, value)
    return clone
