"""Symbolic functions by name, domain and opset, as `torch.onnx.symbolic_registry` had them; the
domain "" is PyTorch's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sardonyx.extend.symbolic_functions.library_functions import library_function
from sardonyx.extend.symbolic_functions.registration import (
    register_custom_op_symbolic,
    registered_function,
    unregister_custom_op_symbolic,
)


def register_op(opname: str, op: Callable[..., Any], domain: str, version: int) -> None:
    register_custom_op_symbolic(_full_name(opname, domain), op, version)


def unregister_op(opname: str, domain: str, version: int) -> None:
    unregister_custom_op_symbolic(_full_name(opname, domain), version)


def is_registered_op(opname: str, domain: str, version: int) -> bool:
    return get_registered_op(opname, domain, version) is not None


def get_registered_op(opname: str, domain: str, version: int) -> Callable[..., Any] | None:
    """The function that a user registered, or else the library's form; None where it has none."""
    found = registered_function(_full_name(opname, domain), version)
    return found or (library_function(opname) if domain in ("", "aten") else None)


def _full_name(opname: str, domain: str) -> str:
    return f"{domain or 'aten'}::{opname}"
