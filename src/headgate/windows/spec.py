"""The window specifications together: every kind of window a query can ask for, as one type."""

from __future__ import annotations

from typing import TypeAlias

from headgate.windows.axis import AxisId, Number
from headgate.windows.on_axis import OnAxis
from headgate.windows.tuple_slide import TupleSlide

Window: TypeAlias = OnAxis | TupleSlide
"""Windows on an axis, or of tuples: `by` tells which.

Each has `windows(tuples)`, `extent(w, tuples)`, `wids(t, tuples)`, `bounds(w)` and `category`.
"""

WindowId: TypeAlias = AxisId | Number
"""A number k, (k, key) for a partitioned window, or an attribute value for a slide-by-tuple window."""
