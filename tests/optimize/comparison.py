"""Runs a model in ONNX Runtime before and after a pass, without the runtime's own optimizer."""

from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import onnxruntime as ort

Feeds = Mapping[str, np.ndarray]


def parse(
    graph: str,
    *,
    opset: int = 20,
    initializers: Mapping[str, np.ndarray] | None = None,
    functions: str = "",
    infer: bool = True,
) -> ir.Model:
    """A model from onnx's textual form, with inferred shapes as the builder would declare them."""
    imports = f'"": {opset}' + (', "local": 1' if functions else "")
    proto = onnx.parser.parse_model(
        f"<ir_version: 10, opset_import: [{imports}]> {graph} {functions}"
    )
    for name, array in (initializers or {}).items():
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    onnx.checker.check_model(proto, full_check=True)
    if infer:
        proto = onnx.shape_inference.infer_shapes(proto, strict_mode=True, data_prop=True)
    return ir.from_proto(proto)


def run(model: ir.Model, feeds: Feeds) -> dict[str, np.ndarray]:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    proto = ir.to_proto(model)
    onnx.checker.check_model(proto, full_check=True)
    session = ort.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(feeds)), strict=True))


def op_counts(model: ir.Model) -> Counter[str]:
    """Operators by name, those in bodies included and Constants left out."""
    return Counter(node.op_type for node in model.graph.all_nodes() if node.op_type != "Constant")


def check(
    rewrite: Callable[[ir.Model], object],
    model: ir.Model,
    *runs: Feeds,
    rtol: float = 0.0,
    atol: float = 0.0,
) -> Counter[str]:
    """Rewrite the model, compare its outputs by name, and count what is left."""
    inputs = [value.name for value in model.graph.inputs]
    before = [run(model, feeds) for feeds in runs]
    rewrite(model)
    assert [value.name for value in model.graph.inputs] == inputs
    for feeds, expected in zip(runs, before, strict=True):
        found = run(model, feeds)
        assert list(found) == list(expected)
        for name, array in expected.items():
            assert found[name].dtype == array.dtype
            np.testing.assert_allclose(found[name], array, rtol=rtol, atol=atol, err_msg=name)
    return op_counts(model)


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
