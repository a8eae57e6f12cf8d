"""What users pass to the public calls: done, or refused with an error that says what to write."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headgate as hg
from headgate.connect.packets.packets import PacketSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNTS = "SELECT count(*) AS n [RANGE 2, SLIDE 2] FROM Main"
#: What is neither a text, nor a number, nor anything of ours.
ODD: list[Any] = [None, True, 5, 2.5, math.nan, math.inf, "", "nonsense", b"x", [], {}, (), object(), int, len]
NUMBERS = "SELECT count(*) AS n [RANGE 2, SLIDE 2, WA ts] FROM Main"


class Product:
    def init(self) -> float:
        return 1.0

    def incr(self, state: float, x: float) -> float:
        return state * x

    def merge(self, left: float, right: float) -> float:
        return left * right

    def final(self, state: float) -> float:
        return state


PACKETS = tuple(f.name for f in fields(PacketSource))
#: The same without its types, which wrong arguments do not have.
loose: Any = hg
#: Calls that need no Spark, with a word or two that the error has.
WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: loose.estimate("0.99"), "confidence='0.99': give a number between 0 and 1"),
    (lambda: loose.estimate(True), "confidence=True"),
    (lambda: loose.estimate(math.nan), "confidence=nan"),
    (lambda: loose.estimate(1), "confidence=1"),
    (lambda: loose.estimate(rate=0), "rate=0: give a share of the tuples above 0"),
    (lambda: loose.estimate(rate=math.nan), "rate=nan"),
    (lambda: loose.estimate(rate=True), "rate=True"),
    (lambda: loose.estimate(weight=0), "weight=0: give a number above 0"),
    (lambda: loose.estimate(weight=math.inf), "weight=inf"),
    (lambda: loose.estimate(weight="2"), "weight='2'"),
    (lambda: loose.estimate(priority=1.5), "priority=1.5: give a whole number"),
    (lambda: loose.estimate(priority=False), "priority=False"),
    (lambda: loose.estimate(confidance=0.9), "no argument confidance: did you mean confidence?"),
    (lambda: loose.estimate(1, 2, 3, 4, 5), "its arguments are confidence, weight, priority, rate"),
    (lambda: loose.exact("q"), "hg.exact cannot be called so"),
    (lambda: loose.subset("3"), "gap='3'"),
    (lambda: loose.subset(gap=0), "gap=0"),
    (lambda: loose.subset(gap=True), "gap=True"),
    (lambda: loose.subset(drop=1.5), "drop=1.5: give a fraction"),
    (lambda: loose.subset(drop=True), "drop=True"),
    (lambda: loose.subset(by="grup"), "by='grup': did you mean 'group'?"),
    (lambda: loose.subset(by=["group"]), "by=['group']: give 'window' or 'group'"),
    (lambda: loose.subset(method=3), "method=3"),
    (lambda: loose.subset(max_state=1e6), "max_state=1000000.0: give a number of tuples"),
    (lambda: loose.subset(fill=True), "fill=True: give 'linear'"),
    (lambda: loose.sample(spread=0.5), "spread=0.5"),
    (lambda: loose.sample(spread=True), "spread=True"),
    (lambda: loose.sample(rate="all"), "rate='all'"),
    (lambda: loose.overload(), "hg.overload needs target"),
    (lambda: loose.overload("5 parsecs"), "target='5 parsecs': give a time above zero"),
    (lambda: loose.overload("5 rows"), "target='5 rows'"),
    (lambda: loose.overload(True), "target=True"),
    (lambda: loose.overload(math.nan), "target=nan"),
    (lambda: loose.overload("5 seconds", headroom="10 %"), "headroom='10 %'"),
    (lambda: loose.overload("5 seconds", headroom=1), "headroom=1"),
    (lambda: loose.overload("5 seconds", headrom=0.1), "did you mean headroom?"),
    (lambda: loose.progress(), "hg.progress needs attr"),
    (lambda: loose.progress(5, ordered=True), "attr=5"),
    (lambda: loose.progress("ts", within=True), "within=True"),
    (lambda: loose.progress("ts", within=math.nan), "within=nan"),
    (lambda: loose.progress("ts", withn="5 seconds"), "did you mean within?"),
    (lambda: loose.progress("ts", ordered=1), "ordered=1"),
    (lambda: loose.progress("ts", slack_rows=2.5), "slack_rows=2.5"),
    (lambda: loose.progress("ts", ordered=True, idle="soon"), "idle='soon'"),
    (lambda: loose.register_aggregate(5, Product(), "double"), "5 is no name for an aggregate"),
    (lambda: loose.register_aggregate("p", Product, "double"), "give an object, Product()"),
    (lambda: loose.register_aggregate("p", Product(), None), "returns=None"),
    (lambda: loose.register_aggregate("p", Product(), "double", bounded="no"), "bounded='no'"),
    (lambda: loose.register_aggregate("p", object(), "double"), "lacks the method init, incr, merge, final"),
    (lambda: loose.select(5), "item=5"),
    (lambda: loose.select(), "at least one item"),
    (lambda: loose.select("a").from_(5), "=5: give the name of a stream"),
    (lambda: loose.select("a").where(None), "condition=None"),
    (lambda: loose.select("a").window(rnage=5), "did you mean range?"),
    (lambda: loose.window(True), "range=True"),
    (lambda: loose.window(5, slide=[]), "slide=[]"),
    (lambda: loose.window(5, wa=5), "wa=5"),
    (lambda: loose.window(5, pa=5), "pa=5"),
    (lambda: loose.window(5, tumbling="yes"), "tumbling='yes'"),
    (lambda: loose.stream("Main", window="5 minutes"), "window='5 minutes': give what hg.window(...) gives"),
    (lambda: loose.stream("Main", alias=5), "alias=5"),
    (lambda: loose.union("Main", 5), "=5: give the name of a stream"),
    (lambda: loose.window(math.nan), "range=nan: give a length"),
    (lambda: loose.select("a").from_("S").sql(prety=True), "did you mean pretty?"),
    (lambda: loose.register_aggregate("p", Product(), "dubble"), "returns='dubble': give the Spark SQL type"),
    (lambda: loose.table(), "hg.table needs rows"),
    (lambda: loose.session("local"), "hg.session cannot be called so"),
    (lambda: loose.sources.files(), "hg.sources.files needs path"),
    (lambda: loose.sources.files("in", "csv", "ts INT", 1, 2), "path, format, schema, max_files_per_batch, **options"),
    (lambda: loose.sources.packets(rat=5), "hg.sources.packets has no argument rat: did you mean rate?"),
    (lambda: loose.sources.packets(5), "hg.sources.packets cannot be called so"),
    (lambda: loose.sinks.parquet(5), "hg.sinks.parquet: path=5: give the path of a folder"),
    (lambda: loose.sinks.table(" "), "hg.sinks.table: name=' ': give the name of a table"),
    (lambda: loose.sinks.console(0), "hg.sinks.console: rows=0: give a whole number"),
]


@pytest.mark.parametrize(("call", "words"), WRONG, ids=lambda value: value if isinstance(value, str) else "")
def test_a_wrong_argument_is_refused(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(hg.Error) as caught:
        call()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.data())
def test_any_value_is_taken_or_refused_with_one_error(data: st.DataObject) -> None:
    """No value, however odd, ends in an error of Python's."""
    calls: dict[Callable[..., Any], tuple[str, ...]] = {
        hg.estimate: ("confidence", "weight", "priority", "rate"),
        hg.subset: ("gap", "drop", "by", "weight", "fill", "method", "max_state"),
        hg.sample: ("rate", "spread", "weight"),
        hg.overload: ("target", "headroom"),
        hg.progress: ("attr", "within", "ordered", "slack_rows", "punctuated_by", "by", "idle", "rule"),
        hg.window: ("range", "slide", "wa", "pa", "rattr", "sattr", "tumbling"),
        hg.stream: ("source", "window", "alias"),
        hg.sources.packets: PACKETS,
        hg.sinks.console: ("rows",),
        hg.sinks.table: ("name",),
    }
    call = data.draw(st.sampled_from(list(calls)))
    some = st.sampled_from([*ODD, np.float64(0.5), np.int64(3), 10**400, -1, "5 seconds", "a b"])
    given_ = data.draw(st.dictionaries(st.sampled_from([*calls[call], "oops"]), some, max_size=3))
    with suppress(hg.Error):
        call(**given_)


def test_numbers_of_numpy_become_plain_ones() -> None:
    policy = loose.subset(gap=np.int64(3), drop=np.float64(0.5))
    assert (type(policy.gap), type(policy.drop)) == (int, float)
    assert type(loose.progress("ts", slack_rows=np.int64(5)).rule.slack) is int
    assert loose.sinks.console(np.int64(5)) == hg.sinks.console(5)
    packets = loose.sources.packets(rate=np.int64(5), hosts=np.int64(3), rows=np.int32(9))
    assert packets == hg.sources.packets(rate=5, hosts=3, rows=9)
    assert packets.rows.to_json() == hg.sources.packets(rate=5, hosts=3).rows.to_json()


class TestFlows:
    @pytest.fixture
    def flow(self, spark: SparkSession, tmp_path: Path) -> hg.Flow:
        flow = hg.Flow(spark, "args", tmp_path / "checkpoint")
        rows = spark.createDataFrame([(1, 2), (3, 4)], "ts INT, v INT")
        flow.stream("Main", rows, progress=hg.progress("ts", ordered=True))
        return flow

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"policy": "estimate"}, "query q: policy='estimate': give hg.estimate(), with its parentheses"),
            ({"policy": hg.subset}, "policy=subset: give hg.subset(), with its parentheses"),
            ({"policy": 42}, "policy=42: give hg.estimate() or another of hg.exact()"),
            ({"policy": hg.overload("1 second")}, "policy=Overload("),
            ({"strategy": "fast"}, "query q: strategy='fast': give 'eager' or 'paned'"),
            ({"strategy": "eagr"}, "did you mean 'eager'?"),
            ({"strategy": 1}, "strategy=1"),
            ({"anew": "yes"}, "anew='yes': give True or False"),
            ({"polcy": hg.exact()}, "flow.query has no argument polcy: did you mean policy?"),
            ({"sql": 5}, "=5: give the text of a query"),
            ({"sql": " "}, "give the text of a query"),
            ({"name": ""}, "'' cannot name a query"),
            ({"name": None}, "None cannot name a query"),
        ],
    )
    def test_queries(self, flow: hg.Flow, options: dict[str, Any], words: str) -> None:
        with pytest.raises(hg.Error) as caught:
            flow.query(**{"name": "q", "sql": COUNTS, **options})
        assert words in str(caught.value)
        assert flow.names == []

    def test_all_else_of_a_flow_and_its_run(self, flow: hg.Flow) -> None:
        flow.query("q", COUNTS)
        run: Any = flow.run_available()
        loosely: Any = flow
        calls: dict[str, Callable[[], Any]] = {
            "no output ansers: did you mean answers?": lambda: loosely.sink("q", hg.sinks.memory(), output="ansers"),
            "no output 5: ": lambda: loosely.sink("q", hg.sinks.memory(), output=5),
            "5 is not a sink": lambda: loosely.sink("q", 5),
            "memory is not a sink": lambda: loosely.sink("q", hg.sinks.memory),
            "parquet is not a sink": lambda: loosely.sink("q", hg.sinks.parquet),
            "MemorySink is not a sink": lambda: loosely.sink("q", type(hg.sinks.memory())),
            "<lambda> is not a sink": lambda: loosely.sink("q", lambda _: None),
            "the pigeon sink of q: Failed to find": lambda: loosely.sink("q", hg.sinks.format("pigeon")),
            "no query [] in the flow": lambda: loosely.drop([]),
            "no query ['q'] in the flow": lambda: loosely.sink(["q"], hg.sinks.memory()),
            "no query 5 in the flow": lambda: loosely.drop(5),
            "neither a DataFrame nor one of hg.sources": lambda: loosely.stream("S", flow),
            "progress='ts': give hg.progress": lambda: loosely.stream("S", flow._sources["Main"], progress="ts"),
            "5 cannot name a stream": lambda: loosely.stream(5, flow._sources["Main"]),
            "neither a DataFrame nor hg.sources.files": lambda: loosely.table("T", 5),
            "trigger='5 parsecs': give a time": lambda: loosely.start(trigger="5 parsecs"),
            "trigger=5: give a time": lambda: loosely.start(trigger=5),
            "trigger='-1 seconds'": lambda: loosely.start(trigger="-1 seconds"),
            "trigger='5 rows'": lambda: loosely.start(trigger="5 rows"),
            "trigger=''": lambda: loosely.start(trigger=""),
            "flow.start has no argument triger": lambda: loosely.start(triger="1 second"),
            "overload='1 second': give hg.overload": lambda: loosely.start(overload="1 second"),
            "overload=5: give": lambda: loosely.run_available(overload=5),
            "no output late tuples": lambda: run.results("q", output="late tuples"),
            "fill='cubic': give 'linear'": lambda: run.results("q", fill="cubic"),
            "no query None in the flow": lambda: run.results(None),
            "timeout='x': give a number of seconds": lambda: run.await_termination("x"),
            "timeout=nan": lambda: run.await_termination(math.nan),
            "timeout=-1": lambda: run.await_termination(-1),
            "timeout=True": lambda: run.await_termination(True),
            "run.drop has no argument nam": lambda: run.drop(nam="q"),
            "run.query has no argument polcy": lambda: run.query("w", COUNTS, polcy=1),
        }
        for some, call in calls.items():
            with pytest.raises(hg.Error) as caught:
                call()
            assert some in str(caught.value)
        assert run.results("q").count() == 2
        assert run.await_termination(0)

    def test_a_trigger_of_no_time_is_at_once(self, flow: hg.Flow) -> None:
        flow.query("q", COUNTS)
        assert flow.start(trigger="0 seconds").await_termination(0)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"name": ""}, "hg.Flow: name='': give a name"),
            ({"name": "a/b"}, "name='a/b': give a name without slashes"),
            ({"name": "a\nb"}, "without slashes and line breaks"),
            ({"name": 5}, "name=5"),
            ({"checkpoint": None}, "checkpoint=None: give the path of a folder"),
            ({"checkpoint": ""}, "checkpoint=''"),
            ({"checkpoint": 5}, "checkpoint=5"),
            ({"spark": None}, "hg.Flow needs a SparkSession of this process, such as hg.session() gives, and not None"),
            ({"chekpoint": "x"}, "did you mean checkpoint?"),
        ],
    )
    def test_flows(self, spark: SparkSession, options: dict[str, Any], words: str) -> None:
        with pytest.raises(hg.Error) as caught:
            loose.Flow(**{"spark": spark, "name": "args", "checkpoint": "nowhere", **options})
        assert words in str(caught.value)

    def test_a_session_of_spark_connect(self) -> None:
        remote = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
        with pytest.raises(hg.Error, match=r"needs a SparkSession of this process.*and not a Spark Connect session"):
            loose.Flow(remote, "args", "nowhere")

    @pytest.mark.parametrize(
        ("call", "words"),
        [
            (lambda _: loose.evaluate(NUMBERS, Main=5), "stream Main is 5: give a DataFrame"),
            (lambda rows: loose.evaluate(5, Main=rows), "hg.evaluate=5: give the text of a query"),
            (
                lambda rows: loose.evaluate(NUMBERS, strategy="fast", Main=rows),
                "strategy='fast': give 'eager' or 'paned'",
            ),
            (lambda rows: loose.evaluate(NUMBERS, spark="local", Main=rows), "needs a SparkSession of this process"),
            (lambda rows: loose.evaluate(NUMBERS, Main=rows, stratgy="paned"), "stream stratgy is 'paned'"),
            (lambda _: loose.evaluate(NUMBERS, Main=hg.table(object())), "stream Main is <object object"),
            (lambda _: loose.evaluate(), "hg.evaluate needs sql"),
            (lambda _: loose.session(spark_sql_shuffle_partitions=None), "spark_sql_shuffle_partitions=None"),
            (lambda _: loose.session(spark_sql_shuffle_partitions="many"), "many"),
            (lambda _: loose.session(shuffle_partitions=2), "unknown setting 'shuffle_partitions'"),
        ],
    )
    def test_the_rest(self, spark: SparkSession, call: Callable[[Any], Any], words: str) -> None:
        rows = spark.createDataFrame([(1, 2), (3, 4)], "ts INT, v INT")
        with pytest.raises(hg.Error) as caught:
            call(rows)
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)
