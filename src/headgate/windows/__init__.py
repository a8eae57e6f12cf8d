"""Window semantics: which tuples are in which windows, from the specification and attribute values alone."""

from headgate.windows.axis import Key, Number, Tuple
from headgate.windows.called import Called
from headgate.windows.category import Category
from headgate.windows.cut import Cut, EqualCut
from headgate.windows.landmark import Landmark
from headgate.windows.on_axis import OnAxis
from headgate.windows.sliding import Sliding
from headgate.windows.spec import Window, WindowId
from headgate.windows.tuple_slide import TupleSlide
from headgate.windows.type import WindowType

__all__ = [
    "Called",
    "Category",
    "Cut",
    "EqualCut",
    "Key",
    "Landmark",
    "Number",
    "OnAxis",
    "Sliding",
    "Tuple",
    "TupleSlide",
    "Window",
    "WindowId",
    "WindowType",
]
