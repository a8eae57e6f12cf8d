"""The window specifications together: every kind of window a query can ask for, as one type."""

from __future__ import annotations

from typing import TypeAlias

from headgate.windows.axis import AxisId, Number
from headgate.windows.landmark import Landmark
from headgate.windows.sliding import Sliding
from headgate.windows.tuple_slide import TupleSlide

Window: TypeAlias = Sliding | Landmark | TupleSlide
"""Each has `windows(tuples)`, `extent(w, tuples)`, `wids(t, tuples)`, `bounds(w)` and `category`."""

WindowId: TypeAlias = AxisId | Number
"""A number k, (k, key) for a partitioned window, or an attribute value for a slide-by-tuple window."""
