"""Window semantics: which tuples are in which windows, from the specification and attribute values alone."""

from headgate.windows.axis import Key, Number, Tuple
from headgate.windows.category import Category
from headgate.windows.landmark import Landmark
from headgate.windows.panes import Panes
from headgate.windows.sliding import Sliding
from headgate.windows.spec import Window, WindowId
from headgate.windows.tuple_slide import TupleSlide

__all__ = [
    "Category",
    "Key",
    "Landmark",
    "Number",
    "Panes",
    "Sliding",
    "Tuple",
    "TupleSlide",
    "Window",
    "WindowId",
]
