"""Objects of users, pickled for Spark's Python processes."""

from __future__ import annotations

import sys

from pyspark import cloudpickle

_OURS = __name__.partition(".")[0]


def pickled(thing: object) -> bytes:
    """The object with its class by value: a class of a script or a notebook reaches processes that cannot import it."""
    module = sys.modules[type(thing).__module__]
    if module.__name__.partition(".")[0] == _OURS:
        return bytes(cloudpickle.dumps(thing))
    cloudpickle.register_pickle_by_value(module)
    try:
        return bytes(cloudpickle.dumps(thing))
    finally:
        cloudpickle.unregister_pickle_by_value(module)
