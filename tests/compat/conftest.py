"""Registrations of one test are not there for the next."""

from __future__ import annotations

import pytest

from sardonyx.extend.symbolic_functions import registration


@pytest.fixture(autouse=True)
def no_registrations_left(monkeypatch):
    monkeypatch.setattr(registration, "_registered", {})
