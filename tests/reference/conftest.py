"""Registrations of one test are not there for the next."""

from __future__ import annotations

import pytest

from sardonyx.extend import custom_symbolics


@pytest.fixture(autouse=True)
def no_registrations_left(monkeypatch):
    monkeypatch.setattr(custom_symbolics, "_registered", {})
