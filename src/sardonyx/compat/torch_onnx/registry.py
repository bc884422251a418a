"""OnnxRegistry: which ONNX functions stand for which operators of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from sardonyx.errors import InvalidOptionError
from sardonyx.legalize import supported_opset
from sardonyx.lower.plugins import load_plugins
from sardonyx.lower.registry import LIBRARY
from sardonyx.options import DEFAULT_OPSET


@dataclass(frozen=True, slots=True)
class ONNXFunction:
    """A function that gives an operator its ONNX form."""

    onnx_function: Callable[..., Any]
    op_full_name: str
    is_custom: bool = False


class OnnxRegistry:
    """The operators of an export: Sardonyx's library, and the functions registered here."""

    def __init__(self, opset_version: int = DEFAULT_OPSET) -> None:
        self._opset_version = supported_opset(opset_version)
        self._custom: dict[str, list[ONNXFunction]] = {}
        self._translations: dict[Any, Callable[..., Any]] = {}

    @property
    def opset_version(self) -> int:
        """The opset of the files that are exported with this registry."""
        return self._opset_version

    def register_op(
        self,
        function: Callable[..., Any],
        namespace: str,
        op_name: str,
        overload: str | None = None,
    ) -> None:
        """Make `function`, an onnxscript function, the ONNX form of
        `torch.ops.<namespace>.<op_name>.<overload>`; the last one that is registered counts."""
        if not callable(function):
            raise InvalidOptionError(f"{function!r} is no function")
        self._translations[_operator(namespace, op_name, overload)] = function
        name = _full_name(namespace, op_name, overload)
        self._custom.setdefault(name, []).append(ONNXFunction(function, name, is_custom=True))

    def get_op_functions(
        self, namespace: str, op_name: str, overload: str | None = None
    ) -> list[ONNXFunction] | None:
        """The functions of an operator, registered ones last; None where it has none."""
        name = _full_name(namespace, op_name, overload)
        load_plugins([name], LIBRARY)
        lowering = LIBRARY.get(name)
        own = [] if lowering is None else [ONNXFunction(lowering.function, name)]
        return [*own, *self._custom.get(name, [])] or None

    def is_registered_op(self, namespace: str, op_name: str, overload: str | None = None) -> bool:
        return self.get_op_functions(namespace, op_name, overload) is not None

    def translation_table(self) -> dict[Any, Callable[..., Any]]:
        """The registered functions by operator, as `sardonyx.export` takes them."""
        return dict(self._translations)


def _full_name(namespace: str, op_name: str, overload: str | None) -> str:
    """As graphs have it: the default overload goes without saying."""
    named = overload not in (None, "", "default")
    return f"{namespace}::{op_name}.{overload}" if named else f"{namespace}::{op_name}"


def _operator(namespace: str, op_name: str, overload: str | None) -> Any:
    try:
        packet = getattr(getattr(torch.ops, namespace), op_name)
        return getattr(packet, overload or "default")
    except AttributeError as error:
        raise InvalidOptionError(
            f"there is no operator torch.ops.{namespace}.{op_name}.{overload or 'default'}"
        ) from error
