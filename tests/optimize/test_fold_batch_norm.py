import io

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
import torch

import sardonyx
from sardonyx.lower.weights import TorchTensor
from sardonyx.optimize.fold_batch_norm import FoldBatchNorm
from sardonyx.optimize.pipeline import optimize
from tests.optimize.comparison import check, floats, op_counts, parse

TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}


def norm_tensors(channels: int, dtype: type = np.float32) -> dict[str, np.ndarray]:
    return {
        "bn.weight": floats(channels, seed=1).astype(dtype),
        "bn.bias": floats(channels, seed=2).astype(dtype),
        "bn.mean": floats(channels, seed=3).astype(dtype),
        "bn.var": (np.abs(floats(channels, seed=4)) + 0.5).astype(dtype),
    }


def conv_norm(
    op: str = "Conv",
    *,
    groups: int = 1,
    bias: bool = True,
    body: str = "",
    outputs: str = "float[1, C, H, W] y",
    norm: str = "",
    inputs: str = "",
    element: str = "float",
    dtype: type = np.float32,
) -> ir.Model:
    """4 channels to 6, then a BatchNormalization, then what `body` makes of its result n."""
    shape = (6, 4 // groups, 3, 3) if op == "Conv" else (4, 6 // groups, 3, 3)
    tensors = {"conv.weight": floats(*shape).astype(dtype), **norm_tensors(6, dtype)}
    if bias:
        tensors["conv.bias"] = floats(6, seed=5).astype(dtype)
    arguments = "x, w, b" if bias else "x, w"
    names = {
        "w": "conv.weight",
        "b": "conv.bias",
        "g": "bn.weight",
        "h": "bn.bias",
        "m": "bn.mean",
        "v": "bn.var",
    }
    model = parse(
        f"""g ({element}[1, 4, 7, 7] x {inputs}) => ({outputs.replace("float", element)}) {{
            c = {op} <group = {groups}, kernel_shape = [3, 3], pads = [1, 1, 1, 1]> ({arguments})
            n = BatchNormalization <epsilon = 0.01> {norm} (c, g, h, m, v)
            {body or "y = Identity(n)"} }}""".replace("> <", ", "),
        initializers={short: tensors[name] for short, name in names.items() if name in tensors},
    )
    for short, name in names.items():
        if name in tensors:
            model.graph.initializers[short].name = name
    return model


X = {"x": floats(1, 4, 7, 7, seed=9)}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
def test_folds(op, groups, bias):
    model = conv_norm(op, groups=groups, bias=bias)
    assert check(optimize, model, X, **TOLERANCE) == {op: 1}
    assert sorted(model.graph.initializers) == ["conv.bias", "conv.weight"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_it_is_written_as_it_is_computed(dtype):
    model = conv_norm("Conv", groups=2)
    weight = torch.randn(6, 3, 3, 2, dtype=dtype).permute(0, 3, 1, 2)
    model.graph.initializers["conv.weight"].const_value = TorchTensor(weight, "conv.weight")
    optimize(model)
    folded = model.graph.initializers["conv.weight"].const_value
    file = io.BytesIO()
    folded.tofile(file)
    assert file.getvalue() == folded.tobytes()
    scale, variance = (
        torch.from_numpy(norm_tensors(6)[name]).double() for name in ("bn.weight", "bn.var")
    )
    exact = weight.double() * (scale / (variance + 0.01).sqrt()).view(6, 1, 1, 1)
    torch.testing.assert_close(folded._evaluate().raw, exact.to(dtype), rtol=2e-7, atol=0)


def test_depthwise_convolution():
    tensors = {"w": floats(4, 1, 3, 3), **{k[3:]: v for k, v in norm_tensors(4).items()}}
    model = parse(
        """g (float[1, 4, 7, 7] x) => (float[1, 4, 5, 5] y) {
            c = Conv <group = 4> (x, w) y = BatchNormalization(c, weight, bias, mean, var) }""",
        initializers=tensors,
    )
    assert check(optimize, model, X, **TOLERANCE) == {"Conv": 1}


def test_two_norms_after_one_convolution():
    model = conv_norm(body="y = BatchNormalization(n, g, h, m, v)")
    assert check(optimize, model, X, **TOLERANCE) == {"Conv": 1}


def test_folded_node_has_the_provenance_of_the_convolution():
    model = conv_norm()
    for node in model.graph:
        node.metadata_props["sardonyx.module"] = node.op_type
    optimize(model)
    (node,) = model.graph
    assert node.metadata_props == {"sardonyx.module": "Conv"}
    assert model.graph.outputs[0].name == "y"


def test_torch_weights_are_read_only_when_written():
    model = conv_norm()
    weight = torch.randn(6, 4, 3, 3)
    model.graph.initializers["conv.weight"].const_value = TorchTensor(weight, "conv.weight")
    before = weight.clone()
    check(optimize, model, X, **TOLERANCE)
    folded = model.graph.initializers["conv.weight"].const_value
    assert isinstance(folded, ir.LazyTensor) and folded.dtype == ir.DataType.FLOAT
    assert torch.equal(weight, before)


@pytest.mark.parametrize(
    "options",
    [
        {"body": "r = Relu(c) s = Add(r, n) y = Identity(s)"},
        {"body": "y = Identity(n)", "outputs": "float[1, C, H, W] y, float[1, C, H, W] c"},
        {"body": "k = Mul(w, w) t = ReduceSum(k) y = Add(n, t)"},
        {"inputs": ", float[6, 4, 3, 3] w"},
        {"inputs": ", float[6] m"},
    ],
    ids=["conv result used", "conv result is output", "weight used", "weight input", "mean input"],
)
def test_does_not_fold_what_others_see(options):
    if "inputs" in options:
        model = conv_norm()
        name = "conv.weight" if "] w" in options["inputs"] else "bn.mean"
        model.graph.inputs.append(model.graph.initializers[name])
    else:
        model = conv_norm(**options)
    assert check(optimize, model, X, **TOLERANCE)["BatchNormalization"] == 1


def test_does_not_fold_an_initializer_that_is_an_output():
    model = conv_norm()
    model.graph.outputs.append(model.graph.initializers["conv.weight"])
    assert not FoldBatchNorm()(model).modified


def test_does_not_fold_when_training():
    tensors = {"w": floats(6, 4, 3, 3), **{k[3:]: v for k, v in norm_tensors(6).items()}}
    model = parse(
        """g (float[1, 4, 7, 7] x) => (float[1, 6, 5, 5] y) {
            c = Conv(x, w)
            y, a, b = BatchNormalization <training_mode = 1> (c, weight, bias, mean, var) }""",
        initializers=tensors,
    )
    optimize(model)
    assert op_counts(model) == {"Conv": 1, "BatchNormalization": 1}


def test_does_not_fold_when_parameters_must_stay():
    model = conv_norm()
    contents = {name: v.const_value for name, v in model.graph.initializers.items()}
    optimize(model, fold_parameters=False)
    assert op_counts(model) == {"Conv": 1, "BatchNormalization": 1}
    assert {name: v.const_value for name, v in model.graph.initializers.items()} == contents


def test_does_not_fold_weights_without_data():
    model = conv_norm()
    model.graph.initializers["conv.weight"].const_value = TorchTensor(
        torch.empty(6, 4, 3, 3, device="meta"), "conv.weight"
    )
    assert not FoldBatchNorm()(model).modified


def test_half_precision_folds_unless_it_would_overflow():
    options = {"element": "float16", "dtype": np.float16}
    feeds = {"x": X["x"].astype(np.float16)}
    model = conv_norm(**options)
    assert check(optimize, model, feeds, rtol=2e-2, atol=2e-2) == {"Conv": 1}
    assert model.graph.initializers["conv.weight"].dtype == ir.DataType.FLOAT16
    model = conv_norm(**options)
    model.graph.initializers["bn.weight"].const_value = ir.tensor(np.full(6, 6e4, np.float16))
    assert not FoldBatchNorm()(model).modified


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_weights_that_change_before_they_are_written(dtype):
    model = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 1), torch.nn.BatchNorm2d(3)).eval().to(dtype)
    x = torch.randn(1, 2, 4, 4).to(dtype)
    program = sardonyx.export(model, (x,), verify=False)
    with torch.no_grad():
        for tensor in model.state_dict().values():
            if tensor.is_floating_point():
                tensor.mul_(1.5).add_(0.25)
    file = io.BytesIO()
    program.save(file)
    session = onnxruntime.InferenceSession(file.getvalue())
    (result,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    expected = model(x).detach()
    tolerance = 2e-3 if dtype == torch.float16 else 1e-5
    torch.testing.assert_close(torch.from_numpy(result), expected, rtol=tolerance, atol=tolerance)
