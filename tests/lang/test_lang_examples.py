"""The examples in the docstrings of the language."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import headgate.lang

MODULES = [module.name for module in pkgutil.iter_modules(headgate.lang.__path__, "headgate.lang.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
