"""The test kit: run a flow batch by batch, with tuples and a clock that the test gives, and crash it where you like.

docs/testing.md shows it at work. Only `driver.py` knows how the engine is built.
"""

from headgate.testing.clock import ManualClock
from headgate.testing.crashes import CRASH_POINTS, at
from headgate.testing.driver import Driver, Tuples, drive
from headgate.testing.streams import Batches, Collector

__all__ = ["CRASH_POINTS", "Batches", "Collector", "Driver", "ManualClock", "Tuples", "at", "drive"]
