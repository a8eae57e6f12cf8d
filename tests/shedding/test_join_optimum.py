"""The offline optimum of a join under a budget: against trying everything."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from headgate import reference
from headgate.reference.join_optimum import (
    Arrival,
    Pair,
    greedy_of_whole_tuples,
    most_by_keeping,
    most_of_whole_tuples,
    pairs,
)

arrivals = st.lists(st.builds(Arrival, st.integers(0, 12), st.sampled_from(["a", "b", None])), max_size=6)
lengths = st.integers(1, 8)
#: Eighths, so that sums are exact and a budget is met or is not.
prices = st.integers(0, 16).map(lambda eighths: eighths / 8)
graphs = st.lists(
    st.builds(Pair, st.integers(0, 3), st.integers(0, 3), st.booleans()),
    max_size=7,
    unique_by=lambda pair: (pair.left, pair.right),
)


def by_trying(results: list[Pair], update: float, result: float, budget: float, paid: int) -> int:
    """The most results whose first `paid` tuples each, and they themselves, are within the budget."""
    return max(
        size
        for size in range(len(results) + 1)
        for chosen in combinations(results, size)
        if len({node for pair in chosen for node in pair.nodes[:paid]}) * update + size * result <= budget
    )


@given(graphs, prices, prices, st.integers(0, 80).map(lambda eighths: eighths / 8))
def test_the_optimum_is_what_trying_everything_finds(
    results: list[Pair], update: float, result: float, budget: float
) -> None:
    whole = most_of_whole_tuples(results, update, result, budget)
    assert whole == by_trying(results, update, result, budget, paid=2)
    keeping = most_by_keeping(results, update, result, budget)
    assert keeping == by_trying(results, update, result, budget, paid=1)
    assert greedy_of_whole_tuples(results, update, result, budget) <= whole <= keeping


@given(arrivals, arrivals, lengths, lengths)
@settings(max_examples=15)
def test_its_pairs_are_the_answer_of_the_query(lefts: list[Arrival], rights: list[Arrival], a: int, b: int) -> None:
    schema = {"ts": "int", "k": "string", "n": "int"}
    sql = f"SELECT L.n AS l, R.n AS r FROM L [RANGE {a}, WA ts], R [RANGE {b}, WA ts] WHERE L.k = R.k"
    tables: dict[str, list[dict[str, object]]] = {
        name: [{"ts": ts, "k": key, "n": n} for n, (ts, key) in enumerate(stream)]
        for name, stream in (("L", lefts), ("R", rights))
    }
    answer = reference.evaluate(sql, {"L": schema, "R": schema}, L=tables["L"], R=tables["R"])
    assert sorted((pair.left, pair.right) for pair in pairs(lefts, rights, a, b)) == sorted(
        (row["l"], row["r"]) for row in answer
    )


def test_the_heuristic_takes_the_component_with_the_most_results_for_its_cost() -> None:
    square = [Pair(i, j, True) for i in (0, 1) for j in (0, 1)]  # 4 results of 4 tuples
    lonely = [Pair(2, 2, True), Pair(3, 3, True)]  # 2 results of 4 tuples
    assert greedy_of_whole_tuples(lonely + square, update=1, result=0, budget=4) == 4
    # There is room for half of the square: the second result shares a tuple with the first.
    assert greedy_of_whole_tuples(lonely + square, update=1, result=0, budget=3) == 2
