"""The operators of torch.ops.quantized as operators on real numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from sardonyx._torch_private import OpOverload
from sardonyx.aten.graph import Argument, Value
from sardonyx.aten.schema import parameters_of
from sardonyx.capture.quantized.packed_parameters import convolution_settings
from sardonyx.capture.quantized.tensor import PackedParameters
from sardonyx.errors import UnsupportedOperatorError

if TYPE_CHECKING:
    from sardonyx.capture.quantized.reader import QuantizedReader

aten = torch.ops.aten
_Form: TypeAlias = "Callable[[QuantizedReader, dict[str, Argument]], Any]"


def _as(op: OpOverload, *names: str, then: Sequence[Argument] = ()) -> _Form:
    """The operator `op` of these arguments, and constant ones after them."""
    return lambda r, a: r.call(op, *(r.real(a[name]) for name in names), *then)


def _binary(name: str) -> _Form:
    packet = getattr(aten, name)

    def form(r: QuantizedReader, a: dict[str, Argument]) -> Any:
        left = r.real(a["qa"])
        right = r.real(a["qb"] if "qb" in a else a["b"])
        op = packet.Tensor if isinstance(right, Value) else packet.Scalar
        return r.call(op, left, right)

    return form


def _packed(a: dict[str, Argument]) -> PackedParameters:
    return next(p for p in a.values() if isinstance(p, PackedParameters))


def _linear(r: QuantizedReader, a: dict[str, Argument]) -> Any:
    weight, bias = r.unpacked(_packed(a), torch.ops.quantized.linear_unpack)
    return r.call(aten.linear.default, r.real(a["X"]), weight, bias)


def _linear_fp16(r: QuantizedReader, a: dict[str, Argument]) -> Any:
    weight, bias = r.unpacked(_packed(a), torch.ops.quantized.linear_unpack_fp16)
    return r.call(aten.linear.default, a["X"], weight, bias)


def _linear_leaky_relu(r: QuantizedReader, a: dict[str, Argument]) -> Any:
    return r.call(aten.leaky_relu.default, _linear(r, a), a["negative_slope"])


_CONVOLUTIONS = (aten.conv1d.default, aten.conv2d.default, aten.conv3d.default)
_TRANSPOSED = (
    aten.conv_transpose1d.default,
    aten.conv_transpose2d.input,
    aten.conv_transpose3d.input,
)


def _convolution(spatial: int, *, transposed: bool = False) -> _Form:
    kind = "conv_transpose" if transposed else "conv"
    op = (_TRANSPOSED if transposed else _CONVOLUTIONS)[spatial - 1]
    unpack = getattr(torch.ops.quantized, f"{kind}{spatial}d_unpack")

    def form(r: QuantizedReader, a: dict[str, Argument]) -> Any:
        packed = _packed(a)
        settings = convolution_settings(packed, spatial, transposed=transposed)
        weight, bias = r.unpacked(packed, unpack)
        in_order = [settings[p.name] for p in parameters_of(op)[3:]]
        return r.call(op, r.real(a["qx"]), weight, bias, *in_order)

    return form


def _dynamic(form: _Form, name: str = "qx") -> _Form:
    def dynamic(r: QuantizedReader, a: dict[str, Argument]) -> Any:
        x = r.quantize_dynamically(a[name], torch.quint8, a["reduce_range"])
        return form(r, {**a, name: x})

    return dynamic


def _convolution_and_sum(r: QuantizedReader, a: dict[str, Argument]) -> Any:
    return r.call(aten.add.Tensor, _convolution(2)(r, a), r.real(a["qaccum"]))


def _batch_norm(r: QuantizedReader, a: dict[str, Argument]) -> Any:
    x, statistics = r.real(a["qx"]), (a["mean"], a["var"])
    arguments = (a["weight"], a["bias"], *statistics, False, 0.0, a["eps"], False)
    return r.call(aten.batch_norm.default, x, *arguments)


def _instance_norm(r: QuantizedReader, a: dict[str, Argument]) -> Any:
    arguments = (a["weight"], a["bias"], None, None, True, 0.0, a["eps"], False)
    return r.call(aten.instance_norm.default, r.real(a["input"]), *arguments)


def _embedding(r: QuantizedReader, a: dict[str, Argument]) -> Any:
    return r.call(aten.embedding.default, r.table(_packed(a)), a["indices"])


def _embedding_bag(r: QuantizedReader, a: dict[str, Argument]) -> Any:
    if a["pruned_weights"] or a["compressed_indices_mapping"] is not None:
        raise UnsupportedOperatorError("an embedding bag with pruned rows has no ONNX form")
    weights = a["per_sample_weights"]
    if a["offsets"] is None:  # every row of the indices is a bag
        rows = _embedding(r, a)
        if weights is not None:
            rows = r.call(aten.mul.Tensor, rows, r.call(aten.unsqueeze.default, weights, -1))
        return r.call(aten.sum.dim_IntList, rows, [1])
    # The kernel adds, whatever the mode.
    arguments = (a["indices"], a["offsets"], False, 0, False, weights, a["include_last_offset"])
    return r.call(aten.embedding_bag.default, r.table(_packed(a)), *arguments)[0]


_POOLING = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
FORMS: dict[str, _Form] = {
    "add": _binary("add"),
    "add_scalar": _binary("add"),
    "mul": _binary("mul"),
    "mul_scalar": _binary("mul"),
    "matmul": _as(aten.matmul.default, "qa", "qb"),
    "cat": _as(aten.cat.default, "qx", "dim"),
    "linear": _linear,
    "linear_dynamic": _dynamic(_linear, "X"),
    "linear_dynamic_fp16": _linear_fp16,
    "linear_leaky_relu": _linear_leaky_relu,
    "linear_tanh": lambda r, a: r.call(aten.tanh.default, _linear(r, a)),
    **{f"conv{n}d": _convolution(n) for n in (1, 2, 3)},
    **{f"conv{n}d_dynamic": _dynamic(_convolution(n)) for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": _convolution(n, transposed=True) for n in (1, 2, 3)},
    **{
        f"conv_transpose{n}d_dynamic": _dynamic(_convolution(n, transposed=True)) for n in (1, 2, 3)
    },
    "conv2d_add": _convolution_and_sum,
    **{f"batch_norm{n}": _batch_norm for n in ("", "1d", "2d", "3d")},
    "instance_norm": _instance_norm,
    "group_norm": _as(aten.group_norm.default, "input", "num_groups", "weight", "bias", "eps"),
    "layer_norm": _as(
        aten.layer_norm.default, "input", "normalized_shape", "weight", "bias", "eps"
    ),
    "hardswish": _as(aten.hardswish.default, "input"),
    "sigmoid": _as(aten.sigmoid.default, "qx"),
    "softmax": _as(aten.softmax.int, "qx", "dim"),
    "leaky_relu": _as(aten.leaky_relu.default, "qx", "negative_slope"),
    "relu6": _as(aten.hardtanh.default, "qx", then=(0.0, 6.0)),
    "elu": _as(aten.elu.default, "self", "alpha", "scale", "input_scale"),
    "celu": _as(aten.celu.default, "self", "alpha"),
    "prelu": _as(aten.prelu.default, "qx", "weight"),
    "clamp": _as(aten.clamp.default, "qx", "min", "max"),
    "threshold": _as(aten.threshold.default, "qx", "threshold", "value"),
    "dropout": _as(aten.dropout.default, "self", "p", "training"),
    "max_pool1d": _as(aten.max_pool1d.default, "qx", *_POOLING),
    "max_pool2d": _as(aten.max_pool2d.default, "qx", *_POOLING),
    "embedding_byte": _embedding,
    "embedding_bag_byte": _embedding_bag,
}
"""By the operator's name; a form serves its `_relu` twin too."""
