"""The progress of one stream: pictures of single cases. The general laws are in test_promises.py."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import pytest

from headgate.errors import ProgressError
from headgate.progress import ProgressRule, Punctuation, Seen, StreamProgress, Tracker, progress

SECOND = 1_000_000


def up_to(highest: int | Fraction | None, rows: int = 1, punctuated: int | None = None) -> Seen:
    """Give what a batch with this highest value showed."""
    return Seen(rows, highest, punctuated)


def told(rule: StreamProgress, *batches: Seen) -> list[Punctuation]:
    """Give the punctuation behind each batch of a stream without groups, at one moment."""
    tracker = Tracker(rule)
    answers = []
    for batch in batches:
        tracker.observe({None: batch}, now=0)
        answers.append(tracker.punctuation(now=0))
    return answers


class TestPromises:
    def test_nothing_is_known_before_the_first_tuple(self) -> None:
        tracker = Tracker(progress("ts", ordered=True))
        assert tracker.punctuation(now=5) is None
        tracker.observe({}, now=6)
        tracker.observe({None: Seen(rows=0, highest=None, marked=None)}, now=7)
        assert tracker.punctuation(now=7) is None

    def test_within(self) -> None:
        assert told(progress("v", within=5), up_to(20), up_to(18), up_to(31)) == [15, 15, 26]
        assert told(progress("v", within=0.5), up_to(Fraction(3, 4))) == [Fraction(1, 4)]

    def test_ordered(self) -> None:
        assert told(progress("v", ordered=True), up_to(20), up_to(20), up_to(31)) == [20, 20, 31]

    def test_punctuated(self) -> None:
        rule = progress("v", punctuated_by="mark")
        assert told(rule, up_to(20), up_to(25, punctuated=19), up_to(40)) == [None, 19, 19]

    def test_slack_rows(self) -> None:
        # rows    [3]   [2]   [1]   [4]
        # highest  20    30    25    40
        # behind   -    2>=3? 3: 20  30 and 25 have 4 or more behind them
        rule = progress("v", slack_rows=3)
        assert told(rule, up_to(20, 3), up_to(30, 2), up_to(25, 1), up_to(40, 4)) == [None, None, 20, 30]

    def test_a_large_batch_makes_several_certain_at_once(self) -> None:
        assert told(progress("v", slack_rows=3), up_to(20), up_to(30), up_to(25, 3)) == [None, None, 30]

    def test_slack_within_a_batch(self) -> None:
        # Of 100 rows, five may be followed by lower ones; in which order they came is not known.
        rule = progress("v", slack_rows=5)
        hundred = Seen(100, 99, ranked=[99, 98, 97, 96, 95, 94])
        assert told(rule, hundred, up_to(40, 2), up_to(50, 3)) == [94, 96, 99]

    def test_a_batch_with_fewer_values_than_slack(self) -> None:
        rule = progress("v", slack_rows=3)
        assert told(rule, Seen(2, 20, ranked=[20, 10]), Seen(2, 5, ranked=[5, 4])) == [None, 10]

    def test_no_slack_is_order(self) -> None:
        assert told(progress("v", slack_rows=0), up_to(20), up_to(30)) == [20, 30]

    def test_a_batch_of_nulls_tells_nothing_but_its_rows_count(self) -> None:
        assert told(progress("v", within=5), up_to(20), up_to(None)) == [15, 15]
        assert told(progress("v", slack_rows=2), up_to(20), up_to(None, 2)) == [None, 20]


def test_slack_needs_little_memory_however_small_the_batches() -> None:
    slack, batches = 10_000, 15_777
    tracker = Tracker(progress("v", slack_rows=slack))
    for value in range(batches):
        tracker.observe({None: up_to(value)}, now=0)
    ((_, group),) = tracker.state()["groups"]
    assert len(group["rule"]["waiting"]) < 200
    exact = batches - 1 - slack
    reached = tracker.punctuation(now=0)
    assert reached is not None
    assert exact - slack // 50 <= reached <= exact


class TestGroups:
    def test_the_least_of_the_groups(self) -> None:
        tracker = Tracker(progress("v", ordered=True, by="router"))
        tracker.observe({"a": up_to(20), "b": up_to(12), None: up_to(15)}, now=0)
        assert tracker.punctuation(now=0) == 12
        tracker.observe({"b": up_to(30)}, now=0)
        assert tracker.punctuation(now=0) == 15

    def test_a_group_of_which_nothing_is_known_holds_the_others_back(self) -> None:
        tracker = Tracker(progress("v", slack_rows=5, by="router"))
        tracker.observe({"a": up_to(20)}, now=0)
        tracker.observe({"a": up_to(21, 5), "b": up_to(12)}, now=0)
        assert tracker.punctuation(now=0) is None
        tracker.observe({"b": up_to(13, 5)}, now=0)
        assert tracker.punctuation(now=0) == 12

    def test_without_idle_a_quiet_group_holds_the_others_back_for_ever(self) -> None:
        tracker = Tracker(progress("v", ordered=True, by="router"))
        tracker.observe({"a": up_to(20), "b": up_to(12)}, now=0)
        tracker.observe({"a": up_to(90)}, now=10**15)
        assert tracker.punctuation(now=10**15) == 12
        assert not tracker.is_idle(now=10**18)

    def test_a_quiet_group_no_longer_holds_the_others_back(self) -> None:
        # a  20 . . 50 . . 60
        # b  12 . . .  . . .
        #    0      30   31
        tracker = Tracker(progress("v", ordered=True, by="router", idle=30))
        tracker.observe({"a": up_to(20), "b": up_to(12)}, now=0)
        tracker.observe({"a": up_to(50)}, now=30 * SECOND)
        assert tracker.punctuation(now=30 * SECOND) == 12  # as long as idle, not longer
        tracker.observe({"a": up_to(60)}, now=31 * SECOND)
        assert tracker.punctuation(now=31 * SECOND) == 60

    def test_a_group_that_comes_back_behind_moves_nothing_backwards(self) -> None:
        tracker = Tracker(progress("v", ordered=True, by="router", idle=30))
        tracker.observe({"a": up_to(20), "b": up_to(12)}, now=0)
        tracker.observe({"a": up_to(60)}, now=31 * SECOND)
        assert tracker.punctuation(now=31 * SECOND) == 60
        tracker.observe({"a": up_to(70), "b": up_to(13)}, now=32 * SECOND)
        assert tracker.punctuation(now=32 * SECOND) == 60  # b counts again: a alone would be at 70
        tracker.observe({"b": up_to(65)}, now=33 * SECOND)
        assert tracker.punctuation(now=33 * SECOND) == 65

    def test_a_new_group_moves_nothing_backwards(self) -> None:
        tracker = Tracker(progress("v", ordered=True, by="router"))
        tracker.observe({"a": up_to(20)}, now=0)
        assert tracker.punctuation(now=0) == 20
        tracker.observe({"a": up_to(30), "b": up_to(3)}, now=0)
        assert tracker.punctuation(now=0) == 20


class TestLulls:
    def test_in_a_lull_data_time_goes_on_with_the_wall_clock(self) -> None:
        tracker = Tracker(progress("ts", within="5 seconds", idle="30 seconds"))
        tracker.observe({None: up_to(100 * SECOND)}, now=1000 * SECOND)
        assert tracker.punctuation(now=1030 * SECOND) == 95 * SECOND
        assert not tracker.is_idle(now=1030 * SECOND)
        assert tracker.punctuation(now=1031 * SECOND) == 96 * SECOND
        assert tracker.is_idle(now=1031 * SECOND)
        tracker.observe({}, now=1040 * SECOND)
        assert tracker.punctuation(now=1040 * SECOND) == 105 * SECOND

    def test_what_was_told_in_a_lull_is_not_taken_back_behind_it(self) -> None:
        tracker = Tracker(progress("ts", ordered=True, idle="30 seconds"))
        tracker.observe({None: up_to(100 * SECOND)}, now=0)
        assert tracker.punctuation(now=40 * SECOND) == 110 * SECOND
        tracker.observe({None: up_to(105 * SECOND)}, now=41 * SECOND)
        assert not tracker.is_idle(now=41 * SECOND)
        assert tracker.punctuation(now=41 * SECOND) == 110 * SECOND
        tracker.observe({None: up_to(120 * SECOND)}, now=42 * SECOND)
        assert tracker.punctuation(now=42 * SECOND) == 120 * SECOND

    def test_a_lull_that_nobody_asked_in_makes_nothing_late(self) -> None:
        tracker = Tracker(progress("ts", ordered=True, idle="30 seconds"))
        tracker.observe({None: up_to(100 * SECOND)}, now=0)
        tracker.observe({None: up_to(101 * SECOND)}, now=3600 * SECOND)
        assert tracker.punctuation(now=3600 * SECOND) == 101 * SECOND

    def test_it_goes_on_from_the_groups_that_fell_quiet_last(self) -> None:
        # a  100 .   .
        # b  500 500 .      a has been left out since 31
        #    0   10  41
        tracker = Tracker(progress("ts", ordered=True, by="router", idle="30 seconds"))
        tracker.observe({"a": up_to(100 * SECOND), "b": up_to(500 * SECOND)}, now=0)
        tracker.observe({"b": up_to(500 * SECOND)}, now=10 * SECOND)
        assert tracker.punctuation(now=30 * SECOND) == 100 * SECOND
        assert tracker.punctuation(now=31 * SECOND) == 500 * SECOND
        assert tracker.punctuation(now=41 * SECOND) == 501 * SECOND

    def test_a_quiet_group_of_which_nothing_is_known_does_not_stop_a_lull(self) -> None:
        tracker = Tracker(progress("ts", slack_rows=2, by="router", idle="30 seconds"))
        tracker.observe({"a": up_to(100 * SECOND)}, now=0)
        tracker.observe({"a": up_to(101 * SECOND, 2)}, now=0)
        tracker.observe({"b": up_to(50 * SECOND)}, now=10 * SECOND)
        assert tracker.punctuation(now=40 * SECOND) is None
        assert tracker.punctuation(now=42 * SECOND) == 102 * SECOND

    def test_a_batch_without_rows_does_not_end_a_lull(self) -> None:
        tracker = Tracker(progress("ts", ordered=True, idle="30 seconds"))
        tracker.observe({None: up_to(100 * SECOND)}, now=0)
        tracker.observe({None: up_to(None, rows=0)}, now=20 * SECOND)
        assert tracker.is_idle(now=31 * SECOND)

    def test_a_plain_number_does_not_move_with_the_wall_clock(self) -> None:
        rule = progress("v", ordered=True, by="router", idle=30).over("bigint")
        tracker = Tracker(rule)
        tracker.observe({"a": up_to(20), "b": up_to(12)}, now=0)
        tracker.observe({"a": up_to(25)}, now=10 * SECOND)
        assert tracker.is_idle(now=3600 * SECOND)
        assert tracker.punctuation(now=3600 * SECOND) == 25

    def test_a_stream_that_never_began_is_idle_too(self) -> None:
        tracker = Tracker(progress("ts", ordered=True, idle="30 seconds"))
        assert not tracker.is_idle(now=1000 * SECOND)
        tracker.observe({}, now=1010 * SECOND)
        assert not tracker.is_idle(now=1030 * SECOND)
        assert tracker.is_idle(now=1031 * SECOND)
        assert tracker.punctuation(now=1031 * SECOND) is None


class TestHeld:
    def test_a_source_that_we_hold_back_is_never_idle(self) -> None:
        tracker = Tracker(progress("ts", ordered=True, idle="30 seconds"))
        tracker.observe({None: up_to(100 * SECOND)}, now=0)
        for second in range(10, 100, 10):
            tracker.observe({}, now=second * SECOND, held=True)
            assert not tracker.is_idle(now=second * SECOND)
            assert tracker.punctuation(now=second * SECOND) == 100 * SECOND
        assert tracker.is_idle(now=(90 + 31) * SECOND)

    def test_a_source_that_was_idle_is_awake_once_we_hold_it_back(self) -> None:
        tracker = Tracker(progress("ts", ordered=True, idle="30 seconds"))
        tracker.observe({None: up_to(100 * SECOND)}, now=0)
        assert tracker.is_idle(now=60 * SECOND)
        tracker.observe({}, now=60 * SECOND, held=True)
        assert not tracker.is_idle(now=60 * SECOND)

    def test_a_group_is_waited_for_while_its_tuples_may_be_held_back(self) -> None:
        tracker = Tracker(progress("v", ordered=True, by="router", idle=30))
        tracker.observe({"a": up_to(20), "b": up_to(12)}, now=0)
        for second in (40, 80):
            tracker.observe({"a": up_to(second)}, now=second * SECOND, held=True)
            assert tracker.punctuation(now=second * SECOND) == 12
        tracker.observe({"a": up_to(111)}, now=111 * SECOND)
        assert tracker.punctuation(now=111 * SECOND) == 111

    def test_a_group_that_had_been_left_out_is_not_waited_for_again(self) -> None:
        tracker = Tracker(progress("v", ordered=True, by="router", idle=30))
        tracker.observe({"a": up_to(20), "b": up_to(12)}, now=0)
        tracker.observe({"a": up_to(60)}, now=31 * SECOND)
        tracker.observe({"a": up_to(70)}, now=40 * SECOND, held=True)
        assert tracker.punctuation(now=40 * SECOND) == 70


class TestClock:
    def test_a_step_backwards_keeps_the_quiet_time_so_far(self) -> None:
        tracker = Tracker(progress("ts", ordered=True, idle="30 seconds"))
        tracker.observe({None: up_to(100 * SECOND)}, now=1000 * SECOND)
        tracker.observe({}, now=1020 * SECOND)
        tracker.observe({}, now=500 * SECOND)
        assert not tracker.is_idle(now=510 * SECOND)
        assert tracker.is_idle(now=511 * SECOND)
        assert tracker.punctuation(now=512 * SECOND) == 102 * SECOND

    def test_punctuation_does_not_follow_the_clock_backwards(self) -> None:
        tracker = Tracker(progress("ts", ordered=True, idle="30 seconds"))
        tracker.observe({None: up_to(100 * SECOND)}, now=0)
        assert tracker.punctuation(now=50 * SECOND) == 120 * SECOND
        assert tracker.punctuation(now=-50 * SECOND) == 120 * SECOND


class TestEnd:
    def test_the_end_is_final(self) -> None:
        tracker = Tracker(progress("ts", ordered=True))
        tracker.observe({None: up_to(100)}, now=0)
        tracker.end()
        tracker.observe({None: up_to(200)}, now=1)
        assert tracker.punctuation(now=1) == math.inf

    @pytest.mark.parametrize("highest", [7, Fraction(1, 3)])
    def test_the_state_is_json_and_exact(self, highest: int | Fraction) -> None:
        rule = progress("v", slack_rows=2, by="router")
        tracker = Tracker(rule)
        tracker.observe({"a": up_to(highest), None: up_to(highest, 2)}, now=0)
        state = json.loads(json.dumps(tracker.state()))
        again = Tracker.restored(rule, state)
        assert again.state() == state
        again.observe({"a": up_to(None, 2), None: up_to(None, 2)}, now=0)
        assert again.punctuation(now=0) == highest
        again.end()
        ended = json.loads(json.dumps(again.state()))
        assert ended["told"] == "end"
        assert Tracker.restored(rule, ended).punctuation(now=0) == math.inf


class OneRule(ProgressRule):
    """A rule that counts the batches, and says what it is told to."""

    def __init__(self, says: object) -> None:
        self.says = says

    def step(self, state: int | None, seen: Seen) -> tuple[int, Any]:  # noqa: ARG002
        return (state or 0) + 1, self.says


class TestRules:
    def test_a_state_from_before_rules_had_one_of_their_own(self) -> None:
        known = {"bound": 7, "last": 3, "rows": 4, "waiting": [[[[1, 9]], 2, 4]]}
        state = {"told": 7, "clock": 3, "wall": 3, "by": None, "groups": [[None, known]]}
        slack = Tracker.restored(progress("v", slack_rows=3), state)
        slack.observe({None: up_to(2, 2)}, now=4)
        assert slack.punctuation(now=4) == 7
        slack.observe({None: up_to(2, 1)}, now=5)
        assert slack.punctuation(now=5) == 9
        within = Tracker.restored(progress("v", within=3), state)
        within.observe({None: up_to(12)}, now=4)
        assert within.punctuation(now=4) == 9

    def test_a_rule_of_another_kind_does_not_get_the_state(self) -> None:
        tracker = Tracker(progress("v", slack_rows=3))
        tracker.observe({None: up_to(9, 5)}, now=0)
        state = json.loads(json.dumps(tracker.state()))
        again = Tracker.restored(progress("v", rule=OneRule(None)), state)
        again.observe({None: up_to(10)}, now=1)
        again = Tracker.restored(progress("v", rule=OneRule(12)), again.state())
        again.observe({None: up_to(10)}, now=1)
        assert again.state()["groups"][0][1]["rule"] == 2
        assert again.punctuation(now=1) == 12

    @pytest.mark.parametrize(("type_", "bound"), [("timestamp", 12), ("double", Fraction(25, 2))])
    def test_a_rule_may_give_a_float(self, type_: str, bound: Punctuation) -> None:
        assert told(progress("v", rule=OneRule(12.5)).over(type_), up_to(20)) == [bound]

    @pytest.mark.parametrize("says", [math.inf, math.nan, "12", True])
    def test_a_rule_that_gives_no_place(self, says: object) -> None:
        with pytest.raises(ProgressError, match="its rule OneRule gave"):
            told(progress("v", rule=OneRule(says)), up_to(20))

    def test_a_state_that_cannot_be_written_is_told_at_once(self) -> None:
        rule = OneRule(1)
        rule.start = lambda: {1, 2}  # type: ignore[method-assign]
        with pytest.raises(ProgressError, match="its first state cannot be written as JSON"):
            progress("v", rule=rule)
