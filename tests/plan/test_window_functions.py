"""Window types that are registered: how a call in GROUP BY is bound, explained, and refused where it makes no sense."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import headgate as hg
from headgate.lang import parse_query
from headgate.plan import Catalog, Field, Source, bind
from headgate.plan.logical.explain import explain
from headgate.shed.subset.rules import droppable
from headgate.windows import Called, EqualCut

if TYPE_CHECKING:
    from headgate.plan import Node
    from headgate.windows import Number

STREAM = Source("S", (Field("ts", "timestamp"), Field("v", "int"), Field("k", "string")), progressing="ts")


class Uneven(hg.Cut):
    """Panes of three and of seven microseconds in turns."""

    needs_time = True

    def pane(self, place: Number) -> int:
        return place // 10 * 2 + (place % 10 >= 3)

    def start(self, pane: int) -> Number:
        return pane // 2 * 10 + (3 if pane % 2 else 0)

    def pane_sql(self, place: str) -> str:
        return place

    def start_sql(self, pane: str) -> str:
        return pane


def uneven(count: int = 1, slide: int = 0) -> hg.WindowType:
    return hg.WindowType(Uneven(), count, slide)


hg.register_window("uneven", uneven)
hg.register_window("tens", lambda: EqualCut(10))
hg.register_window("nothing", lambda: 5)  # type: ignore[arg-type,return-value]


def bound(sql: str) -> Node:
    return bind(parse_query(sql), Catalog([STREAM]))


def window(call: str) -> Called:
    (aggregate,) = bound(f"SELECT count(*) AS n FROM S GROUP BY {call}").inputs
    found = aggregate.window  # type: ignore[attr-defined]
    assert isinstance(found, Called)
    return found


def test_constants_are_passed_on() -> None:
    assert window("uneven(ts, 4, 2)").type == hg.WindowType(Uneven().every(2), 2, 1)
    assert window("tens(v)").type == hg.WindowType(EqualCut(10))
    assert window("UNEVEN( ts )").type == hg.WindowType(Uneven())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("unevn(ts)", "unknown function unevn: did you mean uneven?"),
        ("uneven(v)", "uneven(v): v is int: give a column that is a time"),
        ("tens(k)", "tens(k): k is string: give a column that is a time or a number"),
        ("uneven(ts, v)", "uneven(ts, v): v is not a constant"),
        ("uneven()", "uneven(): the first argument is the column to window over, such as uneven(ts)"),
        ("uneven(ts, 0, 1)", "uneven(ts, 0, 1): per_window=0: give a whole number of panes"),
        ("uneven(ts, 1, 2, 3)", "uneven(ts, 1, 2, 3): uneven does not take these arguments"),
        ("nothing(ts)", "nothing(ts): nothing gave 5: it has to give an hg.WindowType or an hg.Cut"),
        ("uneven(ts), tens(v)", "two windows for one aggregate"),
        ("window(ts, '1 day'), k + uneven(ts)", "uneven() stands in GROUP BY"),
    ],
)
def test_calls_that_make_no_sense(call: str, message: str) -> None:
    with pytest.raises(hg.BindError) as caught:
        window(call)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "make", "message"),
    [
        ("a b", uneven, "is no name for a window type"),
        ("months_between", uneven, "months_between is a function already"),
        ("sum", uneven, "sum is a function already"),
        ("weeks", 5, "window type weeks: make=5: give a function or a class"),
    ],
)
def test_names_that_are_taken(name: str, make: Any, message: str) -> None:
    with pytest.raises(hg.WindowError, match=message):
        hg.register_window(name, make)


def test_windows_of_no_one_length_cannot_be_dropped() -> None:
    assert droppable(window("tens(v)")).range == 10
    with pytest.raises(hg.WindowError, match=r"no window of uneven\(ts, 2\) can be dropped: shed by 'estimate'"):
        droppable(window("uneven(ts, 2)"))


def test_they_are_explained() -> None:
    text = explain(bound("SELECT k, sum(v) AS s FROM S GROUP BY uneven(ts, 4, 1), k"), "paned")
    assert "sliding: 4 panes of Uneven() of ts, every pane of Uneven(); a tuple is in 4 windows" in text
    assert "1 pane of Uneven() long; 4 to a window, 1 to a slide" in text
