"""What SQL has and the language has not is refused by its own name; what was once passed over is done or refused."""

from __future__ import annotations

import pytest

import headgate as hg
from headgate.lang import parse_query
from headgate.plan import Catalog, Field, Project, Source, bind

COLUMNS = (Field("ts", "timestamp"), Field("k", "string"), Field("x", "int"))
CATALOG = Catalog(
    [
        Source("S", COLUMNS, progressing="ts"),
        Source("T", COLUMNS, progressing="ts"),
        Source(
            "R",
            (*COLUMNS, Field("rate", "int"), Field("sampling_rate", "double"), Field("window_end", "timestamp")),
            progressing="ts",
        ),
        Source("hosts", (Field("k", "string"), Field("name", "string")), table=True),
    ]
)
W = "[RANGE 1 minute, WA ts]"
BOUNDS = ["window_start", "window_end"]

REFUSED = [
    # clauses
    ("SELECT k FROM S UNION DISTINCT SELECT k FROM T", "a UNION keeps duplicates"),
    ("SELECT k FROM S TABLESAMPLE (10 PERCENT)", "TABLESAMPLE: sampling is chosen by a query's policy"),
    ("SELECT * FROM S PIVOT (sum(x) FOR k IN ('a', 'b'))", "PIVOT"),
    ("SELECT * FROM S UNPIVOT (v FOR n IN (x, k))", "UNPIVOT"),
    ("SELECT S.k FROM S NATURAL JOIN T", "NATURAL"),
    ("SELECT S.k FROM S NATURAL JOIN hosts", "NATURAL"),
    (f"SELECT k, sum(x) {W} FROM S GROUP BY k WITH ROLLUP", "ROLLUP"),
    (f"SELECT k, sum(x) {W} FROM S GROUP BY ROLLUP (k)", "ROLLUP"),
    (f"SELECT k, sum(x) {W} FROM S GROUP BY CUBE (k)", "CUBE"),
    (f"SELECT k, sum(x) {W} FROM S GROUP BY GROUPING SETS ((k), ())", "GROUPING SETS"),
    (f"SELECT k, sum(x) {W} FROM S GROUP BY ALL", "GROUP BY ALL"),
    ("SELECT k FROM S VERSION AS OF 3", "VERSION AS OF"),
    ("SELECT k FROM S TIMESTAMP AS OF '2026-01-01'", "TIMESTAMP AS OF"),
    ("SELECT /*+ BROADCAST(hosts) */ S.k FROM S JOIN hosts ON S.k = hosts.k", "a hint"),
    ("SELECT k FROM S /*+ BROADCAST(S) */", "line 1, column 17: a hint"),
    ("SELECT k /*+ REPARTITION(3) */, x FROM S", "a hint"),
    ("(SELECT k FROM S) LIMIT 3", "LIMIT"),
    ("((SELECT k FROM S) ORDER BY k)", "ORDER BY"),
    ("SELECT k FROM (S) TABLESAMPLE (10 PERCENT)", "TABLESAMPLE"),
    ("SELECT * FROM (S) PIVOT (sum(x) FOR k IN ('a'))", "PIVOT"),
    ("SELECT k FROM other.S", "a database before the name of a stream"),
    ("SELECT k FROM S ORDER BY k", "ORDER BY: results of a continuous query have no order"),
    ("SELECT k FROM S SORT BY k", "SORT BY"),
    ("SELECT k FROM S DISTRIBUTE BY k", "DISTRIBUTE BY"),
    ("SELECT k FROM S CLUSTER BY k", "CLUSTER BY"),
    ("SELECT k FROM S LIMIT 3", "LIMIT"),
    ("SELECT k FROM S FOR UPDATE", "FOR UPDATE"),
    ("SELECT k INTO t FROM S", "INTO"),
    ("SELECT k FROM S OFFSET 3", "OFFSET"),
    ("SELECT k FROM S QUALIFY k = 'a'", "QUALIFY"),
    ("SELECT k FROM S LATERAL VIEW explode(array(x)) t AS y", "LATERAL VIEW"),
    ("SELECT k FROM S, LATERAL explode(array(x)) t", "expected a stream or a SELECT in FROM"),
    ("SELECT k FROM range(10)", "expected a stream or a SELECT in FROM"),
    ("SELECT k FROM S |> WHERE x > 1", "expected the end of the statement"),
    ("WITH RECURSIVE q AS (SELECT k FROM S) SELECT k FROM q", "RECURSIVE"),
    ("SELECT S.k FROM S JOIN hosts USING (k)", "USING"),
    ("SELECT k FROM S UNION ALL (SELECT k FROM T)", "for a union of two queries, put both into parentheses"),
    ("SELECT S.k FROM S FULL OUTER JOIN T ON S.k = T.k", "FULL OUTER JOIN is not part of the language"),
    ("SELECT S.k FROM S RIGHT JOIN T ON S.k = T.k", "RIGHT JOIN is not part of the language"),
    ("SELECT S.k FROM S LEFT SEMI JOIN hosts ON S.k = hosts.k", "LEFT SEMI JOIN is not part of the language"),
    ("SELECT S.k FROM S LEFT JOIN T ON S.k = T.k", "outer joins of streams are not part of the language"),
    # items and expressions
    ("SELECT * REPLACE (1 AS k) FROM S", "REPLACE"),
    ("SELECT * EXCEPT (nothing) FROM S", "unknown column nothing"),
    ("SELECT other.* FROM S", "unknown stream other in other.*"),
    ("SELECT x AS (a, b) FROM S", "several names"),
    ("SELECT k FROM S WHERE x IN (SELECT x FROM T)", "a subquery in an expression"),
    ("SELECT k FROM S WHERE EXISTS (SELECT x FROM T)", "a subquery in an expression"),
    ("SELECT (SELECT max(x) FROM T) AS m FROM S", "a subquery in an expression"),
    ("SELECT sum(x) OVER (PARTITION BY k) FROM S", "OVER"),
    ("SELECT row_number() AS n FROM S", "row_number, which goes with OVER"),
    ("SELECT explode(array(x)) AS y FROM S", "explode makes several rows of one"),
    ("SELECT rand() AS r FROM S", "rand depends on more than its arguments"),
    ("SELECT current_timestamp AS now FROM S", "current_timestamp depends on more than its arguments"),
    ("SELECT struct(*) AS s FROM S", "* stands alone"),
    ("SELECT :x AS v FROM S", "a placeholder"),
    ("SELECT x DISTINCT FROM S", "expected"),
    ("SELECT upper(DISTINCT k) AS u FROM S", "DISTINCT goes with an aggregate function"),
    ("SELECT k FROM S HAVING x > 1", "HAVING goes with an aggregate"),
    (f"SELECT count(*) {W} FROM S GROUP BY session_window(ts, '5 minutes')", "session windows are not part"),
    ("SELECT window(ts, '1 minute') AS w FROM S", "window() stands in GROUP BY"),
    (f"SELECT count(*) {W} FROM S GROUP BY 1.5", "GROUP BY 1.5: the SELECT has 1 columns"),
    (f"SELECT count(*) {W} FROM S GROUP BY 0", "GROUP BY 0"),
    (f"SELECT count(*) {W} FROM S GROUP BY -1", "GROUP BY -1: the SELECT has 1 columns"),
    (f"SELECT k, count(*) AS n {W} FROM S GROUP BY k HAVING sum(n) > 1", "unknown column n"),
    (f"SELECT transform(array(1), x -> x + max(x)) AS y {W} FROM S", "max(x): x is what the function goes through"),
    (f"SELECT k, x, count(*) {W} FROM S GROUP BY (k, x)", "GROUP BY (k, x): leave the parentheses out"),
    (f"SELECT count(*) {W} FROM S GROUP BY ()", "GROUP BY (): leave it out"),
    ("WITH q AS (SELECT k FROM S), Q AS (SELECT x FROM S) SELECT * FROM q", "WITH names two queries Q"),
    ("SELECT a FROM S AS s(a, b, A)", "s(a, b, A) gives two columns one name"),
    ("SELECT x -> x + 1 AS y FROM S", "-> stands inside the parentheses of a function"),
    ("SELECT x FROM S WHERE k ISNULL", "expected the end of the statement, found 'ISNULL'"),
    ("SELECT X'ZZ' AS y FROM S", "line 1, column 8: expected digits from 0 to F"),
    # what answers have of their own
    (f"SELECT count(*) AS sampling_rate {W} FROM S", "an answer has a column sampling_rate of its own"),
    ("SELECT x AS Sampling_Rate FROM S", "give yours another name with AS, or leave it out"),
    ("SELECT DISTINCT ON (k) k, rate AS sampling_rate FROM R [RANGE 1 minute, WA ts]", "sampling_rate of its own"),
    ("SELECT a.sampling_rate FROM R AS a JOIN hosts AS h ON a.k = h.k", "sampling_rate of its own"),
    (f"SELECT count(*) AS window_start {W} FROM S", "an answer has a column window_start of its own"),
    (f"SELECT n AS window_end FROM (SELECT count(*) AS n {W} FROM S)", "a column window_end of its own"),
    (f"SELECT window_end, count(*) {W} FROM R GROUP BY window_end", "GROUP BY window_end: an answer has a column"),
    ("SELECT CASE WHEN x > 1 THEN 1 ELSE SELECT 1 END FROM S", "expected"),
    # functions
    (f"SELECT cuont(*) {W} FROM S", "unknown function cuont: did you mean count?"),
    (f"SELECT smu(x) {W} FROM S", "unknown function smu: did you mean sum?"),
    (f"SELECT avrage(x) {W} FROM S", "unknown function avrage: did you mean avg?"),
    ("SELECT rnage(x) AS y FROM S", "unknown function rnage: Spark has none of this name"),
    ("SELECT uper(k) AS u FROM S", "unknown function uper: did you mean upper?"),
    ("SELECT xyzzyx(k) AS u FROM S", "unknown function xyzzyx: Spark has none of this name"),
    ("SELECT db.f(k) AS u FROM S", "a database before the name of a function"),
    (
        f"SELECT approx_count_distinct(x) AS n {W} FROM S",
        "approx_count_distinct is not an aggregate that Headgate knows",
    ),
    (f"SELECT approx_count_distinct(x) AS n {W} FROM S", "use count(DISTINCT x), which is exact"),
    (f"SELECT collect_list(x) AS n {W} FROM S", "collect_list(x): collect_list is not an aggregate"),
    (f"SELECT percentile_approx(x, 0.5) AS n {W} FROM S", "use percentile(x, 0.5), which is exact"),
    (f"SELECT grouping_id() AS n {W} FROM S", "one query for each grouping"),
    # aggregates
    (f"SELECT percentile(x, 0.5, 2) {W} FROM S", "percentile takes a value and a fraction, and no frequency"),
    (f"SELECT percentile_cont(x, 0.5) {W} FROM S", "WITHIN GROUP (ORDER BY x)"),
    (f"SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x DESC) {W} FROM S", "take 1 minus the fraction"),
    (f"SELECT mode() WITHIN GROUP (ORDER BY x DESC) {W} FROM S", "leave DESC out"),
    (f"SELECT sum(x) WITHIN GROUP (ORDER BY x) {W} FROM S", "sum takes no WITHIN GROUP"),
    (f"SELECT sum(x ORDER BY x) {W} FROM S", "sum(x ORDER BY x): ORDER BY inside of an aggregate function is not"),
    (f"SELECT sum(x, k) {W} FROM S", "sum takes 1 argument"),
    (f"SELECT sum(*) {W} FROM S", "* goes with count alone"),
    (f"SELECT count() {W} FROM S", "write count(*)"),
    (f"SELECT count(DISTINCT *) {W} FROM S", "count(DISTINCT *): name the columns"),
    (f"SELECT percentile(x, 1.5D) {W} FROM S", "is not a fraction between 0 and 1, such as 0.5"),
    (f"SELECT min(x) IGNORE NULLS {W} FROM S", "IGNORE NULLS goes with first and last"),
    (f"SELECT count(* EXCEPT (k)) {W} FROM S", "EXCEPT"),
    # windows
    ("SELECT count(*) [RANGE TUMBLING 5 minutes, RATTR ts, SLIDE 1 row, SATTR row_num] FROM S", "leave TUMBLING out"),
]


@pytest.mark.parametrize(("sql", "fragment"), REFUSED)
def test_it_is_refused_by_name(sql: str, fragment: str) -> None:
    with pytest.raises(hg.Error) as raised:
        bind(parse_query(sql), CATALOG)
    assert fragment in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT * EXCEPT (k) FROM S", ["ts", "x"]),
        ("SELECT * EXCEPT (k, S.x) FROM S", ["ts"]),
        ("SELECT s.* EXCEPT (k), hosts.name FROM S AS s JOIN hosts ON s.k = hosts.k", ["ts", "x", "name"]),
        ("SELECT a, c FROM S AS s(a, b, c)", ["a", "c"]),
        ("SELECT q.c FROM (SELECT x, k FROM S) AS q(b, c)", ["c"]),
        ("WITH q(b, c) AS (SELECT x, k FROM S) SELECT * FROM q", ["b", "c"]),
        ("WITH q AS (SELECT x FROM S) SELECT x FROM q UNION ALL SELECT x FROM T", ["x"]),
        ("SELECT log10(x), struct(x) AS s FROM S", ["log10(x)", "s"]),
        (f"SELECT k, x + 1 AS y, count(*) AS n {W} FROM S GROUP BY (k), ((x + 1))", ["k", "y", "n", *BOUNDS]),
        ("SELECT CAST(k AS STRING COLLATE UTF8_LCASE) AS c FROM S", ["c"]),
        ("((SELECT k FROM S))", ["k"]),
        ("SELECT q.k FROM ((S)) AS q", ["k"]),
        (f"SELECT k, sum(x) AS x {W} FROM S GROUP BY k HAVING sum(x) > 1 AND x > 1", ["k", "x", *BOUNDS]),
        ("SELECT window(ts, '1 minute') AS w, count(*) AS n FROM S GROUP BY w", ["w", "n", *BOUNDS]),
        ("SELECT window(ts, '1 minute') AS w, count(*) AS n FROM S GROUP BY 1", ["w", "n", *BOUNDS]),
        ("SELECT ts, sampling_rate FROM R", ["ts", "sampling_rate"]),
        ("SELECT window_end AS w, sampling_rate AS r FROM R", ["w", "r"]),
        (f"SELECT window_start AS w, max(window_end) AS m {W} FROM R", ["w", "m", *BOUNDS]),
    ],
)
def test_it_is_done(sql: str, columns: list[str]) -> None:
    assert [field.name for field in bind(parse_query(sql), CATALOG).fields] == columns


def test_columns_may_be_renamed_by_an_alias_of_their_stream() -> None:
    plan = bind(parse_query("SELECT c AS v FROM S AS s(a, b, c)"), CATALOG)
    assert isinstance(plan, Project)
    assert plan.types["v"] == "int"
    assert bind(parse_query("SELECT a FROM S AS s(a, b, c)"), CATALOG).progress == ("a",)


def test_functions_that_only_spark_knows_are_asked_for() -> None:
    asked: list[str] = []

    def knows(name: str) -> bool:
        asked.append(name)
        return name == "my_udf"

    catalog = Catalog([Source("S", COLUMNS)], knows)
    bind(parse_query("SELECT My_UDF(x) AS v FROM S"), catalog)
    with pytest.raises(hg.BindError, match="unknown function my_ufd"):
        bind(parse_query("SELECT my_ufd(x) AS v FROM S"), catalog)
    assert asked == ["my_udf", "my_ufd"]


def test_names_of_the_planner_are_not_those_of_the_input() -> None:
    catalog = Catalog([Source("S", (*COLUMNS, Field("_agg0", "int"), Field("_KEY1", "int")), progressing="ts")])
    plan = bind(parse_query(f"SELECT _agg0, count(*) AS n {W} FROM S GROUP BY _agg0, upper(k), _key1"), catalog)
    names = [field.name.lower() for field in plan.inputs[0].fields]
    assert len(set(names)) == len(names)
