"""Programs of torch.export, given ones and those of strict mode, run node by node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind

from sardonyx import _torch_private
from sardonyx.aten.graph import Mutation, SourceLocation
from sardonyx.aten.location import ModuleNames, from_stack_trace
from sardonyx.capture.flat_model import is_graph_output
from sardonyx.capture.recorder.recorder import Recorder
from sardonyx.errors import CaptureError, UnsupportedOperatorError

_WRITES = {
    "BUFFER_MUTATION": "buffer",
    "PARAMETER_MUTATION": "buffer",
    "USER_INPUT_MUTATION": "input",
}
"""By the name of the output's kind: not every PyTorch has them all."""
_STATE = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


class ProgramRun:
    """One run of a program on fake inputs."""

    def __init__(
        self,
        program: ExportedProgram,
        recorder: Recorder,
        modules: ModuleNames,
        rename: Callable[[str], str] | None = None,
    ) -> None:
        """`rename` gives the model's own name of a part, where the program is of a FlatModel."""
        self._program = program
        self._recorder = recorder
        self._modules = modules
        self._rename = rename

    @staticmethod
    def state_of(program: ExportedProgram) -> dict[str, torch.Tensor]:
        """The tensors that a program holds, by their names."""
        state, constants = program.state_dict, program.constants
        found = {}
        for spec in program.graph_signature.input_specs:
            if spec.kind in _STATE and spec.target is not None:
                held = state if spec.target in state else constants
                found[spec.target] = held[spec.target]
        return found

    def run(self, given: Sequence[Any]) -> list[Any]:
        """What the program returns for its inputs; what it writes is noted in the graph."""
        program, inputs = self._program, iter(given)
        state = self.state_of(program)
        arguments = [self._argument(s, state, inputs) for s in program.graph_signature.input_specs]
        self._recorder.runnable = self._with_lines
        results = self._interpreter(program.graph_module).run(
            *arguments, enable_io_processing=False
        )
        returned = []
        for spec, result in zip(program.graph_signature.output_specs, results, strict=True):
            if spec.kind == OutputKind.USER_OUTPUT:
                if is_graph_output(result):
                    returned.append(result)
            elif spec.kind.name in _WRITES:
                self._note_write(str(spec.target), _WRITES[spec.kind.name], result)
            elif spec.kind.name != "TOKEN":
                raise UnsupportedOperatorError(
                    f"exported programs with {spec.kind} outputs are not supported"
                )
        return returned

    def _argument(self, spec: Any, state: dict[str, torch.Tensor], given: Any) -> Any:
        if spec.kind == InputKind.USER_INPUT:
            return spec.arg.value if isinstance(spec.arg, ConstantArgument) else next(given)
        if spec.kind in _STATE:
            return _checked(spec.target, state[spec.target])
        if spec.kind.name == "CUSTOM_OBJ":
            return self._program.constants[spec.target]
        if spec.kind.name == "TOKEN":
            return None
        raise UnsupportedOperatorError(
            f"exported programs with {spec.kind} inputs are not supported"
        )

    def _note_write(self, name: str, kind: str, result: torch.Tensor) -> None:
        value = self._recorder.output(result)
        location = value.producer.location if value.producer else SourceLocation()
        named = name if self._rename is None else self._rename(name)
        self._recorder.graph.mutated.append(Mutation(named, kind, value, location))

    # -- lines -----------------------------------------------------------------------------------

    def _with_lines(self, body: Any) -> Any:
        if isinstance(body, torch.fx.GraphModule):
            return lambda *given: self._interpreter(body).run(*given, enable_io_processing=False)
        return body

    def _interpreter(self, module: torch.fx.GraphModule) -> torch.fx.Interpreter:
        run = self

        class WithLines(torch.fx.Interpreter):
            def run_node(self, n: torch.fx.Node) -> Any:
                if n.op != "call_function":
                    return super().run_node(n)
                with run._recorder.located(run._location(n)):
                    return _torch_private.as_model_number(super().run_node(n))

        return WithLines(module)

    def _location(self, node: torch.fx.Node) -> SourceLocation:
        stack = node.meta.get("nn_module_stack") or {}
        running = [
            (path.split("@")[0], key.partition("@")[2])
            for key, (path, _) in stack.items()
            if not path.startswith("_empty_nn")
        ]
        path = running[-1][0] if running else ""
        rename = self._rename
        if rename is not None:
            running = [(rename(path), number) for path, number in running[1:]]
            path = rename(path)
        calls = tuple(f"{path}@{number or 0}" for path, number in running)
        place = from_stack_trace(node.meta.get("stack_trace") or "")
        return self._modules.location(path, place, calls)


def _checked(name: str, tensor: torch.Tensor) -> torch.Tensor:
    if _torch_private.is_transformed(tensor):
        raise CaptureError(
            "torch.export cannot record torch.func.grad, nor what is made of it, here: a tensor"
            " inside of it is a constant of the program (torch.autograd.grad of an input that"
            " requires gradients is recorded)"
        )
    if _torch_private.is_fake(tensor) and not _torch_private.is_weightless(tensor):
        raise CaptureError(
            f"{name} has no data in the exported program: torch.export lost a write to .data (write"
            " to the parameter or buffer itself), or a tensor that is made under torch.vmap with"
            " out_dims"
        )
    return tensor
