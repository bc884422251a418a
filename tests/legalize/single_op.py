"""Models of one operator, legalized to every opset below the operator's and run there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
from onnx.reference import ReferenceEvaluator

from sardonyx.legalize import legalize, newest_opset, use_available_kernels
from sardonyx.legalize.emitter import infer_output_types

# The newest opset that ONNX Runtime 1.31 loads.
RUNTIME_OPSET = 26

Array = np.ndarray[Any, Any]


def model_of(
    op_type: str,
    inputs: Mapping[str, Array | None],
    *,
    constants: Iterable[str] = (),
    outputs: int = 1,
    output_dtypes: Sequence[ir.DataType] = (),
    dynamic: bool = False,
    **attributes: Any,
) -> ir.Model:
    """One node at the newest opset; inputs in order, None for one that is not given."""
    values: list[ir.Value | None] = []
    graph_inputs, initializers = [], []
    for name, data in inputs.items():
        if data is None:
            values.append(None)
            continue
        tensor = ir.tensor(data, name=name)
        dims = [f"{name}_{axis}" if dynamic else size for axis, size in enumerate(data.shape)]
        if name in constants:
            value = ir.Value(
                name=name,
                type=ir.TensorType(tensor.dtype),
                shape=ir.Shape(data.shape),
                const_value=tensor,
            )
            initializers.append(value)
        else:
            value = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(dims))
            graph_inputs.append(value)
        values.append(value)
    results = [ir.Value(name=f"out{index}") for index in range(outputs)]
    node = ir.node(op_type, values, attributes, outputs=results, name="node")
    infer_output_types(node, newest_opset())
    for output, dtype in zip(results, output_dtypes, strict=False):
        output.type = ir.TensorType(dtype)
    graph = ir.Graph(
        graph_inputs,
        results,
        nodes=[node],
        initializers=initializers,
        opset_imports={"": newest_opset()},
        name="single",
    )
    node.metadata_props.update({"sardonyx.module": "layer", "sardonyx.source": "model.py:7"})
    return ir.Model(graph, ir_version=10)


def run_reference(model: ir.Model, feeds: Mapping[str, Array]) -> list[Array]:
    return list(ReferenceEvaluator(ir.to_proto(model)).run(None, dict(feeds)))


def run_lowered(model: ir.Model, feeds: Mapping[str, Array]) -> list[Array]:
    proto = ir.to_proto(model)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, dict(feeds)))


def opsets_below(since: int, lowest: int) -> list[int]:
    """All that lack the newest form; of those far below it, 9 and 13 stand for the others."""
    below = range(lowest, min(since, RUNTIME_OPSET + 1))
    return [opset for opset in below if since <= 17 or opset >= 17 or opset in (9, 13)]


def check(
    op_type: str,
    inputs: Mapping[str, Array | None],
    *,
    since: int,
    constants: Iterable[str] = (),
    expected: Sequence[Array] | None = None,
    opsets: Iterable[int] | None = None,
    lowest: int = 9,
    dynamic: Iterable[bool] = (False, True),
    rtol: float = 1e-5,
    atol: float = 1e-6,
    **options: Any,
) -> None:
    """Legalize to opsets below `since`, run there, and compare with the newest form."""
    constants = set(constants)
    feeds = {
        name: data for name, data in inputs.items() if data is not None and name not in constants
    }
    if expected is None:
        expected = run_reference(model_of(op_type, inputs, constants=constants, **options), feeds)
    for is_dynamic in dynamic:
        for opset in opsets or opsets_below(since, lowest):
            model = model_of(op_type, inputs, constants=constants, dynamic=is_dynamic, **options)
            legalize(model, opset)
            assert model.opset_imports[""] == opset
            for node in ir.traversal.RecursiveGraphIterator(model.graph):
                assert node.metadata_props["sardonyx.module"] == "layer", node
            onnx.checker.check_model(ir.to_proto(model), full_check=True)
            use_available_kernels(model)
            for got, want in zip(run_lowered(model, feeds), expected, strict=True):
                assert got.dtype == want.dtype, f"opset {opset}"
                np.testing.assert_allclose(
                    np.asarray(got, dtype=_comparable(got)),
                    np.asarray(want, dtype=_comparable(want)),
                    rtol=rtol,
                    atol=atol,
                    err_msg=f"opset {opset}, dynamic={is_dynamic}",
                )


def _comparable(data: Array) -> Any:
    return np.float64 if data.dtype.kind == "f" else data.dtype
