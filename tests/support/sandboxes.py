"""Sandboxes as test parameters, each with its requirements on the machine."""

from collections.abc import Iterable
from typing import Any

import pytest

from internal.sandbox.bubblewrap import BubblewrapSandbox
from internal.sandbox.landlock import LandlockSandbox

_NEEDS = {"bubblewrap": "namespaces", "landlock": "landlock"}
_NAMES = {BubblewrapSandbox: "bubblewrap", LandlockSandbox: "landlock"}


def sandbox_param(provider: str, *values: object, **options: Any) -> Any:
    """Return a parameter set of a test that uses a provider; `values` follow its name."""
    marks = [*options.pop("marks", ())]
    if provider in _NEEDS:
        marks.append(pytest.mark.needs(_NEEDS[provider]))
    return pytest.param(provider, *values, marks=marks, **options)


def sandbox_params(*providers: str) -> list[Any]:
    """Return providers as parameters of a test."""
    return [sandbox_param(each) for each in providers]


def sandbox_class_params(classes: Iterable[type]) -> list[Any]:
    """Return classes of sandboxes as parameters of a test."""
    return [pytest.param(each, marks=pytest.mark.needs(_NEEDS[_NAMES[each]])) for each in classes]
