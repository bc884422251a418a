"""What the packed parameters of quantized layers hold."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import torch

from sardonyx._torch_private import OpOverload
from sardonyx.aten.graph import Argument, Value
from sardonyx.capture.quantized.tensor import PackedParameters

if TYPE_CHECKING:
    from sardonyx.capture.quantized.reader import QuantizedReader

_CONVOLUTION = re.compile(r"conv(?P<transposed>_transpose)?(?P<spatial>[123])d")


def convolution_settings(
    packed: PackedParameters, spatial: int, *, transposed: bool
) -> dict[str, Any]:
    """Stride, padding, output_padding (of a transposed one), dilation and groups."""
    # What has one spatial dim is packed with two.
    kind = f"conv{'_transpose' if transposed else ''}{max(spatial, 2)}d"
    names = ("stride", "padding", *(("output_padding",) if transposed else ()), "dilation")
    library = torch.ops.quantized
    settings: dict[str, Any] = {
        name: list(getattr(library, f"{kind}_{name}")(packed.content))[-spatial:] for name in names
    }
    settings["groups"] = getattr(library, f"{kind}_groups")(packed.content)
    return settings


def unpacked_arguments(
    r: QuantizedReader, op: OpOverload, arguments: dict[str, Argument]
) -> dict[str, Argument]:
    """The arguments of a call, with what packed parameters hold in their place: weight and bias,
    then the settings of a convolution; of an embedding its rows with their scales."""
    given: dict[str, Argument] = {}
    plain = [n for n, argument in arguments.items() if not isinstance(argument, PackedParameters)]
    for name, argument in arguments.items():
        if isinstance(argument, PackedParameters):
            held = _held(r, op._schema.name.removeprefix("quantized::"), argument)
            given |= {n: a for n, a in held.items() if n not in plain}
        else:
            given[name] = argument
    return given


def _held(r: QuantizedReader, name: str, packed: PackedParameters) -> dict[str, Argument]:
    library = torch.ops.quantized
    if name.startswith("embedding"):
        integers, scales, zeros = r.held_table(packed)
        return {"weight": integers, "weight_scale": scales, "weight_zero_point": zeros}
    convolution = _CONVOLUTION.match(name)
    if convolution is None:
        unpack = library.linear_unpack_fp16 if "fp16" in name else library.linear_unpack
        weight, bias = r.held(packed, unpack)
        return {"weight": weight, "bias": _or_zeros(r, packed, bias, weight.shape[0])}
    transposed = convolution["transposed"] is not None
    settings = convolution_settings(packed, int(convolution["spatial"]), transposed=transposed)
    weight, bias = r.held(packed, getattr(library, f"{convolution[0]}_unpack"))
    channels = weight.shape[1] * settings["groups"] if transposed else weight.shape[0]
    return {"weight": weight, "bias": _or_zeros(r, packed, bias, channels), **settings}


def _or_zeros(
    r: QuantizedReader, packed: PackedParameters, bias: Value | None, channels: Any
) -> Value:
    """The bias of a layer; functions for such operators take one of zeros where it has none."""
    return bias if bias is not None else r.zeros(f"{packed.name}.bias", channels)
