"""Scripted functions and methods that a recorded model calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from sardonyx import _torch_private
from sardonyx.aten.graph import SCRIPT, AtenGraph, Value
from sardonyx.capture.torchscript.program import read_call
from sardonyx.errors import CaptureError
from sardonyx.notes import error_at

if TYPE_CHECKING:
    from sardonyx.capture.recorder.recorder import Recorder


class ScriptCalls:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def call(
        self, call: Callable[..., Any], script: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """What a scripted function or method gives: by the Python code that it was made of, or,
        where it has control flow that data may decide, read as the program that it is."""
        own = _torch_private.python_of_script(script)
        if own is not None and not _torch_private.has_nodes(script, "prim::If", "prim::Loop"):
            return own(*args, **kwargs)
        if isinstance(script, torch.jit.ScriptFunction):
            with self._recorder.dispatch.outside(), _torch_private.no_modes():
                return self._read_script(script, args, kwargs)
        if _torch_private.has_nodes(script, "aten::tensor", "aten::as_tensor"):
            # They write memory without the dispatcher.
            raise error_at(
                CaptureError,
                self._recorder.place(),
                "a script makes tensors of numbers, which cannot be recorded from outside",
                'torch.jit.script of the whole model, and capture="script"',
            )
        return call(script, *args, **kwargs)

    def _read_script(self, script: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        graph = AtenGraph(
            nodes=self._recorder.nodes,
            parameters=self._recorder.graph.parameters,
            symbols=self._recorder.graph.symbols,
            symbol_names=self._recorder.graph.symbol_names,
            captured_by=SCRIPT,
        )
        given = [self._recorder.argument(a) for a in args]
        named = {name: self._recorder.argument(a) for name, a in kwargs.items()}
        result = read_call(script, given, named, graph, self._recorder.mode)
        return self._from_graph(result)

    def _from_graph(self, result: Any) -> Any:
        """What is in the graph, as the model gets it."""
        if isinstance(result, Value):
            fake = self._recorder.tensors.fake_of_value(result)
            self._recorder.example.varies(fake)
            return fake
        if isinstance(result, (list, tuple)):
            return type(result)(map(self._from_graph, result))
        return _torch_private.as_model_number(self._recorder.given(result))
