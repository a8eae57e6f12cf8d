"""What the reference evaluator says where there is little to say."""

from __future__ import annotations

import pytest

from headgate import reference


@pytest.mark.parametrize("group", ["", " GROUP BY k"])
def test_a_landmark_query_that_no_tuple_passes_has_no_answer(group: str) -> None:
    sql = f"SELECT count(*) AS n [RANGE ALL, SLIDE 5, WA ts] FROM A WHERE v > 3{group}"
    assert reference.evaluate(sql, A=[{"ts": 1, "k": "a", "v": 1}]) == []
