"""The caller's names for inputs, outputs, dims and parameters of the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from sardonyx.aten.signature import InputSpec
from sardonyx.errors import DynamicDimError, InvalidOptionError


def name_dims(
    model: ir.Model, inputs: Sequence[InputSpec], output_axes: Mapping[str, Mapping[int, str]]
) -> None:
    """Dynamic dims of inputs and outputs under the names the caller gave them."""
    for value, spec in zip(model.graph.inputs, inputs, strict=False):
        if value.shape is not None:
            dims = (*spec.dims, 2) if spec.dtype.is_complex else spec.dims
            value.shape = ir.Shape(
                [
                    own if isinstance(own, int) else said
                    for own, said in zip(value.shape, dims, strict=True)
                ]
            )
    outputs = {value.name: value for value in model.graph.outputs}
    for name, axes in output_axes.items():
        _name_output_dims(name, outputs[name], axes)


def _name_output_dims(name: str, value: ir.Value, axes: Mapping[int, str]) -> None:
    if value.shape is None:
        return
    dims: list[int | str | ir.SymbolicDim | None] = list(value.shape)
    for axis, dim_name in axes.items():
        if not -len(dims) <= axis < len(dims):
            raise InvalidOptionError(
                f"dynamic axis {axis} of output {name!r} does not exist: it has {len(dims)} dims"
            )
        if isinstance(dims[axis], int):
            refusal = DynamicDimError(
                f"dim {axis} of output {name!r} was asked to be dynamic ({dim_name!r}), but is"
                f" {dims[axis]} for every input: make the input dim it comes from dynamic"
            )
            refusal.dim = name, axis
            raise refusal
        dims[axis] = dim_name
    value.shape = ir.Shape(dims)


def rename_parameters(model: ir.Model, names: Sequence[str], parameters: Sequence[str]) -> None:
    """Gives the first parameters of the file new names, in the order of the state_dict."""
    initializers = model.graph.initializers
    present = [name for name in parameters if name in initializers]
    if len(names) > len(present):
        raise InvalidOptionError(
            f"input_names has {len(names)} names beyond the inputs, but there are only"
            f" {len(present)} parameters: {', '.join(names)}"
        )
    taken = {value.name for value in (*model.graph.inputs, *model.graph.outputs)}
    taken |= set(present[len(names) :])
    if len(set(names)) < len(names) or taken & set(names):
        clash = next(n for n in names if n in taken or list(names).count(n) > 1)
        raise InvalidOptionError(f"input_names calls a parameter {clash!r}, which is taken")
    renamed = [(initializers.pop(old), new) for old, new in zip(present, names, strict=False)]
    for value, new in renamed:
        value.name = new
        if value.const_value is not None:
            value.const_value.name = new
    rest = [initializers.pop(name) for name in list(initializers)]
    for value in (*(value for value, _ in renamed), *rest):
        initializers[value.name or ""] = value
