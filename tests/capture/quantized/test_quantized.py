"""Quantized models against eager, by trace: equal within one step of the last quantization.

PyTorch's kernels multiply by the inverse of a scale and add a bias as an integer or a real number,
as the engine likes; ONNX divides by the scale. Neither is more right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.ao.quantization.fx._decomposed  # the operators of PT2E
from torch import nn
from torch.nn import functional as F

import sardonyx
from tests.lower.ops.harness import check

pytestmark = [
    pytest.mark.filterwarnings("ignore:torch.ao.quantization is deprecated"),
    pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor"),
    pytest.mark.filterwarnings("ignore:Please use quant_min and quant_max"),
]
quantization = torch.ao.quantization
Q = torch.ops.quantized
STEP = 0.05


def seeded(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def quantized(x: torch.Tensor, scale: float = STEP, zero_point: int = 120) -> torch.Tensor:
    return torch.quantize_per_tensor(x, scale, zero_point, torch.quint8)


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = request.param
    yield request.param
    torch.backends.quantized.engine = before


def check_traced(
    model: Callable[..., Any], *args: torch.Tensor, step: float = STEP, **options: Any
) -> sardonyx.ONNXProgram:
    return check(model, *args, captures=("trace",), atol=step * 1.01, rtol=0, **options)


# -- one operator at a time ----------------------------------------------------------------------

OPERATORS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "quantize": lambda q: q,
    "relu": F.relu,
    "relu in place": lambda q: q.clone().relu_(),
    "relu6": lambda q: Q.relu6(q),
    "hardtanh": lambda q: F.hardtanh(q, -0.7, 0.9),
    "clamp": lambda q: torch.clamp(q, -0.5, 0.8),
    "leaky_relu": lambda q: F.leaky_relu(q, 0.2),
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "hardsigmoid": F.hardsigmoid,
    "threshold": lambda q: F.threshold(q, 0.33, 0.1),
    "max_pool2d": lambda q: F.max_pool2d(q, 3, 2, 1),
    "avg_pool2d": lambda q: F.avg_pool2d(q, 2),
    "adaptive_avg_pool2d": lambda q: F.adaptive_avg_pool2d(q, 2),
    "mean": lambda q: q.mean([2, 3]),
    "nearest": lambda q: F.interpolate(q, scale_factor=2),
    "bilinear": lambda q: F.interpolate(q, size=(12, 12), mode="bilinear"),
    "flatten": lambda q: q.flatten(1),
    "view": lambda q: q.view(q.shape[0], -1),
    "reshape": lambda q: q.reshape(q.shape[0], 2, -1),
    "permute": lambda q: q.permute(0, 2, 3, 1).contiguous(),
    "slice": lambda q: q[:, 1:3, ::2],
    "select": lambda q: q[:, 1],
    "chunk": lambda q: q.chunk(2, dim=1)[1],
    "unsqueeze": lambda q: q.unsqueeze(1).squeeze(1),
    "pixel_shuffle": lambda q: F.pixel_shuffle(q, 2),
    "pad": lambda q: F.pad(q, (1, 1, 1, 1), mode="reflect"),
    "cat": lambda q: torch.cat([q, q], 1),
    "dropout": lambda q: F.dropout(q, 0.5, training=False),
    "topk": lambda q: q.topk(3)[0],
    "add": lambda q: Q.add(q, q, 0.1, 60),
    "add_relu": lambda q: Q.add_relu(q, q, 0.1, 60),
    "add_scalar": lambda q: Q.add_scalar(q, 0.35),
    "add_scalar beyond": lambda q: Q.add_scalar(q, 20.0),
    "mul": lambda q: Q.mul(q, q, 0.1, 10),
    "mul_scalar": lambda q: Q.mul_scalar(q, -1.5),
    "mul_scalar_relu": lambda q: Q.mul_scalar_relu(q, -1.5),
    "quantized cat": lambda q: Q.cat([q, q], 1, 0.1, 60),
    "quantized cat, as it is": lambda q: Q.cat_relu([q, q], 1, None, None),
    "matmul": lambda q: Q.matmul(q, q, 0.2, 100),
    "hardswish": lambda q: Q.hardswish(q, 0.04, 20),
    "quantized sigmoid": lambda q: Q.sigmoid(q, 0.02, 3),
    "quantized leaky_relu": lambda q: Q.leaky_relu(q, 0.3, False, 0.04, 50),
    "elu": lambda q: Q.elu(q, 0.04, 50, 0.8, 1.1, 0.9),
    "celu": lambda q: Q.celu(q, 0.04, 50, 0.8),
    "softmax": lambda q: Q.softmax(q, 1, 1 / 256, 0),
    "layer_norm": lambda q: Q.layer_norm(q, [6, 6], None, None, 1e-5, 0.05, 100),
    "group_norm": lambda q: Q.group_norm(q, 2, torch.ones(4) * 2, None, 1e-5, 0.05, 100),
    "instance_norm": lambda q: Q.instance_norm(q, None, torch.ones(4), 1e-5, 0.05, 100),
    "batch_norm": lambda q: Q.batch_norm2d(
        q, torch.ones(4) * 2, torch.zeros(4), torch.zeros(4), torch.ones(4), 1e-5, 0.1, 100
    ),
    "prelu": lambda q: Q.prelu(q, quantized(torch.tensor([0.3])), 0.04, 50),
    "max_pool1d": lambda q: F.max_pool1d(q.flatten(2), 3),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name: str) -> None:
    operator = OPERATORS[name]
    x, other = seeded(2, 4, 6, 6), seeded(3, 4, 6, 6, seed=1)
    step = max(STEP, operator(quantized(x)).q_scale())
    check_traced(
        lambda x: operator(quantized(x)).dequantize(),
        x,
        dynamic={0: [0]},
        others=[(other,)],
        opsets=(17,),
        step=step,
    )


def test_integers_scales_and_zero_points() -> None:
    def function(x: torch.Tensor) -> Any:
        q = quantized(x)
        per_channel = torch.quantize_per_channel(
            x, torch.tensor([0.1, 0.2]), torch.tensor([0, 3]), 0, torch.qint8
        )
        return (
            q.int_repr().int(),
            x * q.q_scale() + q.q_zero_point(),
            per_channel.dequantize(),
            torch.quantize_per_tensor(x, 0.01, 0, torch.qint32).dequantize(),
            torch.quantize_per_tensor(x, x.abs().max() / 100, torch.tensor(7), torch.qint8)
            .relu()
            .dequantize(),
        )

    check_traced(function, seeded(2, 5), step=1)


@pytest.mark.parametrize("reduce_range", [False, True])
def test_dynamic_quantization_of_a_tensor(reduce_range: bool) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.quantize_per_tensor_dynamic(x, torch.quint8, reduce_range).dequantize()

    check_traced(function, seeded(4, 5), dynamic={0: [0]}, others=[(seeded(7, 5) + 3,)], step=0.07)


# -- whole models --------------------------------------------------------------------------------


def converted(model: nn.Module, example: torch.Tensor, engine: str) -> nn.Module:
    model.eval()
    # PyTorch quantizes the weights of transposed convolutions per tensor alone.
    transposed = any(isinstance(m, nn.modules.conv._ConvTransposeNd) for m in model.modules())
    per_tensor = quantization.default_qconfig
    model.qconfig = per_tensor if transposed else quantization.get_default_qconfig(engine)
    prepared = quantization.prepare(model)
    for seed in range(3):
        prepared(seeded(*example.shape, seed=seed))
    return quantization.convert(prepared)


class Residual(nn.Module):
    """Convolutions, a batch norm folded in, FloatFunctional, a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
        self.conv1, self.norm, self.relu = nn.Conv2d(3, 8, 3, 1, 1), nn.BatchNorm2d(8), nn.ReLU()
        self.conv2 = nn.Conv2d(8, 8, 3, 1, 2, dilation=2, groups=4)
        self.sum, self.joined = nn.quantized.FloatFunctional(), nn.quantized.FloatFunctional()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.linear = nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.relu(self.norm(self.conv1(self.quant(x))))
        z = self.conv2(y)
        y = self.joined.cat([self.sum.add_relu(y, z), F.max_pool2d(z, 3, 1, 1)], dim=1)
        return self.dequant(self.linear(self.pool(y).flatten(1)))


@pytest.mark.parametrize("engine", ["fbgemm", "qnnpack", "x86"], indirect=True)
def test_an_eager_mode_model(engine: str) -> None:
    torch.manual_seed(0)
    x = seeded(2, 3, 8, 8)
    model = Residual().eval()
    model = quantization.fuse_modules(model, [["conv1", "norm", "relu"]])
    model = converted(model, x, engine)
    step = model.linear.scale
    program = check_traced(
        model, x, dynamic={0: [0]}, others=[(seeded(5, 3, 8, 8, seed=9),)], step=step
    )
    weights = {v.name: v.dtype for v in program.model.graph.initializers.values()}
    assert {str(weights[f"{m}.weight"]) for m in ("conv1", "conv2", "linear")} == {"INT8"}


LAYERS = {
    "conv1d": (nn.Conv1d(3, 4, 3, 2, 1), seeded(2, 3, 9)),
    "conv3d": (nn.Conv3d(2, 4, 2, 1, 1, bias=False), seeded(1, 2, 4, 4, 4)),
    "conv1d and relu": (nn.Sequential(nn.Conv1d(3, 4, 3), nn.ReLU()), seeded(2, 3, 9)),
    "conv_transpose1d": (nn.ConvTranspose1d(3, 4, 3, 2, 1, 1), seeded(2, 3, 9)),
    "conv_transpose2d": (nn.ConvTranspose2d(4, 4, 3, 2, 1, 1, groups=2), seeded(2, 4, 5, 5)),
    "conv_transpose3d": (nn.ConvTranspose3d(2, 4, 2, 2), seeded(1, 2, 4, 4, 4)),
    "linear and relu": (nn.Sequential(nn.Linear(6, 4), nn.ReLU()), seeded(2, 3, 6)),
    "layer_norm": (nn.LayerNorm(6), seeded(2, 3, 6)),
    "group_norm": (nn.GroupNorm(2, 4), seeded(2, 4, 6)),
    "instance_norm": (nn.InstanceNorm2d(4, affine=True), seeded(2, 4, 5, 5)),
    "hardswish": (nn.Hardswish(), seeded(2, 6)),
    "elu": (nn.ELU(), seeded(2, 6)),
    "leaky_relu": (nn.LeakyReLU(0.1), seeded(2, 6)),
    "sigmoid": (nn.Sigmoid(), seeded(2, 6)),
}


@pytest.mark.parametrize("engine", ["qnnpack", "fbgemm"], indirect=True)
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str, engine: str) -> None:
    layer, x = LAYERS[name]
    if "3d" in name and engine == "qnnpack":
        pytest.skip("qnnpack has no kernel")
    torch.manual_seed(0)
    model = quantization.QuantWrapper(layer)
    if isinstance(layer, nn.Sequential):
        model = quantization.fuse_modules(model.eval(), [["module.0", "module.1"]])
    model = converted(model, x, engine)
    step = max(float(t) for k, t in model.state_dict().items() if k.endswith("scale"))
    check_traced(model, x, dynamic={0: [0]}, step=step, opsets=(20,))


@pytest.mark.parametrize("engine", ["fbgemm", "qnnpack"], indirect=True)
def test_dynamically_quantized_linear_layers(engine: str) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).eval()
    model = quantization.quantize_dynamic(model, {nn.Linear})
    check_traced(model, seeded(3, 8), dynamic={0: [0]}, others=[(seeded(6, 8),)], step=0.03)


def test_linear_layers_with_half_precision_weights() -> None:
    model = nn.Sequential(nn.Linear(8, 4)).eval()
    model = quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.float16)
    check_traced(model, seeded(3, 8), dynamic={0: [0]}, step=1e-4)


@pytest.mark.parametrize("dtype", [torch.qint8, torch.float16])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_dynamically_quantized_recurrent_layers(kind: type[nn.Module], dtype: torch.dtype) -> None:
    class Wrapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = kind(4, 6, num_layers=2, bidirectional=True, batch_first=True)

        def forward(self, x: torch.Tensor) -> Any:
            return self.layers(x)

    torch.manual_seed(0)
    model = quantization.quantize_dynamic(Wrapped().eval(), {kind}, dtype=dtype)
    check_traced(
        model,
        seeded(2, 3, 4),
        dynamic={0: [0, 1]},
        others=[(seeded(3, 5, 4, seed=1),)],
        step=0.02 if dtype == torch.qint8 else 1e-4,
    )


@pytest.mark.parametrize("kind", [nn.Embedding, nn.EmbeddingBag])
def test_quantized_embeddings(kind: type[nn.Module]) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(kind(10, 12)).eval()
    model.qconfig = quantization.float_qparams_weight_only_qconfig
    model = quantization.convert(quantization.prepare(model))
    check_traced(model, torch.tensor([[1, 4, 4], [0, 9, 2]]), dynamic={0: [0]}, step=1e-4)


def test_bags_of_a_quantized_embedding() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.EmbeddingBag(10, 12, mode="sum", include_last_offset=True)).eval()
    model.qconfig = quantization.float_qparams_weight_only_qconfig
    bags = quantization.convert(quantization.prepare(model))[0]
    indices, offsets = torch.tensor([1, 4, 4, 0, 9, 2]), torch.tensor([0, 2, 3, 6])
    check_traced(bags, indices, offsets, torch.rand(6), dynamic={0: [0], 2: [0]}, step=1e-4)


def test_quantization_aware_training() -> None:
    torch.manual_seed(0)
    model = quantization.QuantWrapper(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())).train()
    model.qconfig = quantization.get_default_qat_qconfig("fbgemm")
    prepared = quantization.prepare_qat(model)
    prepared(seeded(2, 3, 6, 6))
    prepared.apply(quantization.disable_observer)
    prepared.eval()
    x = seeded(2, 3, 6, 6, seed=1)
    check(prepared, x, dynamic={0: [0]}, atol=0.05, rtol=0)
    check_traced(quantization.convert(prepared), x, dynamic={0: [0]}, step=0.05)


def test_a_model_quantized_ahead_of_export() -> None:
    """The operators of PT2E, which a program of torch.export holds."""
    D = torch.ops.quantized_decomposed
    weight = torch.randint(-128, 127, (4, 6), dtype=torch.int8)
    scales, zeros = torch.rand(4) / 50, torch.zeros(4, dtype=torch.int64)

    def function(x: torch.Tensor) -> Any:
        q = D.quantize_per_tensor(x, 0.05, 10, 0, 255, torch.uint8)
        x = D.dequantize_per_tensor(q, 0.05, 10, 0, 255, torch.uint8)
        w = D.dequantize_per_channel(weight, scales, zeros, 0, -128, 127, torch.int8)
        y = F.linear(x, w)
        scale, zero = D.choose_qparams.tensor(y, -127, 127, 1e-6, torch.int8)
        q = D.quantize_per_tensor.tensor(y, scale, zero, -127, 127, torch.int8)
        y = D.dequantize_per_tensor.tensor(q, scale, zero, -127, 127, torch.int8)
        wide = D.quantize_per_tensor(y, 0.001, 0, -32768, 32767, torch.int16)
        return y, D.dequantize_per_tensor(wide, 0.001, 0, -32768, 32767, torch.int16)

    program = check(
        function,
        seeded(3, 6),
        dynamic={0: [0]},
        others=[(seeded(5, 6, seed=2),)],
        atol=0.06,
        rtol=0,
    )
    kinds = [node.op_type for node in program.model.graph]
    assert kinds.count("QuantizeLinear") == 2 and kinds.count("DequantizeLinear") == 3


def test_scales_of_every_token_and_of_every_group() -> None:
    D = torch.ops.quantized_decomposed
    weight = torch.randint(-8, 7, (4, 6), dtype=torch.int8)
    scales, zeros = torch.rand(4, 3) / 5, torch.randint(-3, 3, (4, 3))

    def function(x: torch.Tensor) -> Any:
        results = []
        for choose in (D.choose_qparams_per_token, D.choose_qparams_per_token_asymmetric):
            scale, zero = choose(x, torch.int8)
            q = D.quantize_per_token(x, scale, zero, -128, 127, torch.int8)
            results.append(
                D.dequantize_per_token(q, scale, zero, -128, 127, torch.int8, torch.float32)
            )
        w = D.dequantize_per_channel_group(
            weight, scales, zeros, -8, 7, torch.int8, 2, torch.float32
        )
        q = D.quantize_per_channel_group(w + x[:1], scales, zeros, -8, 7, torch.int8, 2)
        return *results, w, q.float()

    check(function, seeded(3, 6), dynamic={0: [0]}, others=[(seeded(5, 6, seed=2),)], atol=0.05)


# -- scales that a program reads off tensors -----------------------------------------------------


class Stubbed(nn.Module):
    """The scale of its input is in a buffer, which a script reads when it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q = self.quant(x)
        q = torch.sigmoid(torch.relu(q))
        return self.dequant(self.layer(q))


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_a_scripted_model_with_stubs() -> None:
    torch.manual_seed(0)
    model = Stubbed().eval()
    model.qconfig = quantization.get_default_qconfig("qnnpack")
    quantization.prepare(model, inplace=True)
    model(seeded(5, 4))
    model = quantization.convert(model)
    program = sardonyx.export(
        torch.jit.script(model), seeded(5, 4), dynamic_axes={"x": {0: "n"}}, capture="script"
    )
    for n in (0, 1, 2, 7):
        x = seeded(n, 4, seed=n)
        torch.testing.assert_close(program(x), model(x), rtol=0, atol=model.layer.scale * 1.01)
