"""Each operator that an exporter of torch.onnx has a form for has one here, is taken apart by
PyTorch, or is read by a capture. Where PyTorch's own samples do not have it, it is run."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch._decomp import decomposition_table

import sardonyx
import sardonyx.plugins.torchvision
from sardonyx.capture.function_overrides.resize import RESIZE_OVERRIDES
from sardonyx.capture.quantized import reader as quantized_reader
from sardonyx.capture.quantized.operators import FORMS as QUANTIZED_FORMS
from sardonyx.capture.torchscript.interpreter import (
    calls,
    dict_calls,
    number_calls,
    reader,
    tensor_queries,
)
from sardonyx.capture.torchscript.types import numbers
from sardonyx.lower.lower import LIBRARY

LIST = Path(__file__).parent / "operators_of_torch_onnx.txt"
NAMES = [line for line in LIST.read_text().splitlines() if not line.startswith("#")]

WITH_A_FORM = {name.split(".")[0] for name in LIBRARY.names()}
READ_OF_TORCHSCRIPT = {
    *calls._CALLS,
    *dict_calls._NEW,
    *dict_calls._READS,
    *dict_calls._CHANGES,
    *number_calls._NUMBER_CALLS,
    *tensor_queries._QUESTIONS,
    *tensor_queries.OF_TYPES,
    *tensor_queries._NEVER,
    *numbers._AS_TENSORS,
    *reader._READERS,
    *tensor_queries.READ_NUMBERS,
    *reader._WITHOUT_EFFECT,
    *quantized_reader._READS,
}
NOT_OF_PYTORCH = {
    "aten::_floor_divide",
    "aten::get_pool_ceil_padding",
    "aten::scan",
    "aten::tanhshrink",
    "prim::ConstantSplit",
    "prim::convert_element_type",
    "prim::shape",
}
"""Functions of the other exporter that are under such a name; PyTorch has no operator of it."""


@cache
def names_of_pytorch() -> set[str]:
    return {schema.name for schema in torch._C._jit_get_all_schemas()}


def spellings(name: str) -> tuple[str, str]:
    return name, f"{name}_"


def overloads(name: str) -> list[Any]:
    namespace, _, packet_name = name.partition("::")
    packet = getattr(getattr(torch.ops, namespace), packet_name, None)
    found = [] if packet is None else [getattr(packet, each) for each in packet.overloads()]
    return [op for op in found if torch._C._dispatch_has_kernel(op.name())]


def way_of(name: str) -> str | None:
    """How it gets into a file."""
    if any(spelled in WITH_A_FORM for spelled in spellings(name)):
        return "form"
    if any(spelled in READ_OF_TORCHSCRIPT for spelled in spellings(name)):
        return "read"
    namespace, _, short = name.partition("::")
    if namespace == "quantized" and {short, short.removesuffix("_relu")} & QUANTIZED_FORMS.keys():
        return "quantized"
    if any(op in decomposition_table or op._can_decompose() for op in overloads(name)):
        return "decomposition"
    if any(op in RESIZE_OVERRIDES for op in overloads(name)):
        return "view"
    if name in MODELS:
        return "run"
    if name in NOT_OF_PYTORCH and not any(s in names_of_pytorch() for s in spellings(name)):
        return "none of PyTorch"
    return None


# -- those that are run ----------------------------------------------------------------------------


class Ordered(torch.nn.Module):
    def __init__(self, kind: type[torch.nn.RNNBase], **options: Any) -> None:
        super().__init__()
        self.layer = kind(4, 3, batch_first=True, **options)

    def forward(self, x: Tensor) -> Tensor:
        lengths = torch.tensor([4, 2, 1])
        packed = torch.nn.utils.rnn.pack_padded_sequence(
            x[None, :, :].expand(3, -1, -1), lengths, True
        )
        return torch.nn.utils.rnn.pad_packed_sequence(self.layer(packed)[0], True)[0]


def of_size(compute: Callable[[Any], Any]) -> Callable[[Tensor], Tensor]:
    """Where torch.export has Python's operators: on sizes."""
    return lambda x: x * compute(x.shape[0])


def deleted(x: Tensor) -> Tensor:
    items = [x, x + 1, x + 2]
    del items[1]
    return items[0] * items[1]


def listed(x: Tensor) -> Tensor:
    items = [x]
    items.append(x + 1)
    items.insert(0, x * 2)
    items[1] = x * 3
    last = items.pop()
    if len(items) == 2 and 2 in [1, 2]:
        last = last - items[0]
    return last + list(items)[1]


def counted(x: Tensor) -> Tensor:
    for i in range(1, x.size(0), 2):
        x = x + i
    return x


def identified(x: Tensor, y: Tensor | None = None) -> Tensor:
    if y is None:
        return x + 1
    if y is not None and not x.is_floating_point():
        return x - 1
    return x


def on_the_cpu(x: Tensor) -> Tensor:
    return x + 1 if x.device.type == "cpu" else x


def in_halves(x: Tensor) -> Tensor:
    left, right = x.chunk(2, dim=1)
    return left - right


def enlarged(x: Tensor) -> Tensor:
    return F.interpolate(x[None, None], scale_factor=2.0, mode="bilinear")


def branched(x: Tensor) -> Tensor:
    if bool(x.sum() > 0):
        y = x * 2
    else:
        y = x - 1
    return y


@torch.compiler.nested_compile_region
def sine(x: Tensor) -> Tensor:
    return x.sin() * 2


_aten = torch.ops.aten
SCRIPTED = {
    "aten::Delete": deleted,
    "aten::append": listed,
    "aten::__derive_index": counted,
    "aten::__is_": identified,
    "aten::__interpolate": enlarged,
    "prim::type": on_the_cpu,
    "prim::ConstantChunk": in_halves,
    "prim::If": branched,
}
MODELS: dict[str, Any] = {
    **SCRIPTED,
    "python::abs": of_size(lambda n: abs(2 - n)),
    "python::add": of_size(lambda n: n + 3),
    "python::and_": of_size(lambda n: torch.sym_ite((n > 1) & (n < 5), 2, 3)),
    "python::ceil": of_size(lambda n: torch.sym_int(n / 2 + 0.75)),
    "python::eq": of_size(lambda n: torch.sym_ite(n == 4, 2, 3)),
    "python::floor": of_size(lambda n: (n / 2).__floor__()),
    "python::floordiv": of_size(lambda n: n // 2),
    "python::ge": of_size(lambda n: torch.sym_ite(n >= 4, 2, 3)),
    "python::getitem": lambda x: x.split(2, dim=1)[1],
    "python::gt": of_size(lambda n: torch.sym_ite(n > 4, 2, 3)),
    "python::le": of_size(lambda n: torch.sym_ite(n <= 4, 2, 3)),
    "python::lshift": of_size(lambda n: n << 2),
    "python::lt": of_size(lambda n: torch.sym_ite(n < 4, 2, 3)),
    "python::mod": of_size(lambda n: n % 3),
    "python::mul": of_size(lambda n: n * n),
    "python::ne": of_size(lambda n: torch.sym_ite(n != 4, 2, 3)),
    "python::neg": of_size(lambda n: -n),
    "python::or_": of_size(lambda n: torch.sym_ite((n < 3) | (n > 5), 2, 3)),
    "python::pow": of_size(lambda n: n**2),
    "python::rshift": of_size(lambda n: n >> 1),
    "python::sub": of_size(lambda n: 7 - n),
    "python::sym_float": of_size(lambda n: torch.sym_float(n) / 3),
    "python::sym_ite": of_size(lambda n: torch.sym_ite(n > 3, n, 2 * n)),
    "python::sym_max": of_size(lambda n: torch.sym_max(n, 5)),
    "python::sym_min": of_size(lambda n: torch.sym_min(n, 5)),
    "python::sym_not": of_size(lambda n: torch.sym_ite(torch.sym_not(n > 3), 2, 3)),
    "python::sym_sum": of_size(lambda n: torch.sym_sum([n, n, 1])),
    "python::truediv": of_size(lambda n: n / 3),
    "python::trunc": of_size(lambda n: (n / 3).__trunc__()),
    "python::cond": lambda x: torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x * 2, (x,)),
    "python::while_loop": lambda x: torch.while_loop(
        lambda i, y: i < 3, lambda i, y: (i + 1, y * 2), (torch.tensor(0), x)
    )[1],
    "python::scan": lambda x: torch._higher_order_ops.scan(
        lambda c, row: (c + row, c * row), x[0], x
    )[1],
    "python::invoke_subgraph": lambda x: sine(x) + x,
    "onnx_symbolic::_symbolic": lambda x: torch.onnx.ops.symbolic(
        "Add", (x, x), dtype=x.dtype, shape=x.shape
    ),
    "onnx_symbolic::_symbolic_multi_out": lambda x: torch.onnx.ops.symbolic_multi_out(
        "Split",
        (x,),
        {"axis": 1, "num_outputs": 2},
        dtypes=(x.dtype,) * 2,
        shapes=(x[:, :2].shape,) * 2,
    )[1],
    "aten::_convolution_mode": lambda x: F.conv1d(x[:, None], torch.ones(2, 1, 3), padding="same"),
    "aten::_dim_arange": lambda x: torch._dim_arange(x, 1),
    "aten::_pack_padded_sequence": Ordered(torch.nn.GRU),
    "aten::lstm": Ordered(torch.nn.LSTM, bidirectional=True),
    "aten::rnn_relu": Ordered(torch.nn.RNN, nonlinearity="relu"),
    "aten::_prelu_kernel": lambda x: _aten._prelu_kernel(x, torch.tensor([0.3])),
    "aten::_shape_as_tensor": lambda x: _aten._shape_as_tensor(x),
    "aten::_unique2": lambda x: _aten._unique2(x.round(), True, True, True),
    "aten::_unsafe_index": lambda x: _aten._unsafe_index(x, [None, torch.tensor([2, 0])]),
    "aten::_weight_norm": lambda x: torch._weight_norm(x, x[:, :1], 0),
    "aten::blackman_window": lambda x: x[:, :1] * torch.blackman_window(6),
    "aten::hamming_window": lambda x: x[:, :1] * torch.hamming_window(6, periodic=False),
    "aten::conv_tbc": lambda x: torch.conv_tbc(x[:, None], torch.ones(3, 4, 2), torch.ones(2), 1),
    "aten::embedding_renorm": lambda x: F.embedding(torch.tensor([1, 0]), x.clone(), max_norm=1.0),
    "aten::fake_quantize_per_tensor_affine": lambda x: torch.fake_quantize_per_tensor_affine(
        x, 0.1, 3, 0, 255
    ),
    "aten::frobenius_norm": lambda x: torch.linalg.matrix_norm(x),
    "aten::hardtanh_backward": lambda x: _aten.hardtanh_backward(x, x * 2, -1.0, 1.0),
    "aten::lift_fresh_copy": lambda x: _aten.lift_fresh_copy(x) + 1,
    "aten::lstm_cell": torch.nn.LSTMCell(4, 3),
    "aten::max_pool1d_with_indices": lambda x: F.max_pool1d(x[None], 2, return_indices=True),
    "aten::nll_loss_nd": lambda x: F.nll_loss(x.log_softmax(1), x.argmin(1)),
    "aten::nonzero_numpy": lambda x: x.gt(0).nonzero(as_tuple=True)[1],
    "aten::numpy_T": lambda x: x.T + 1,
    "aten::reflection_pad1d": lambda x: F.pad(x[None], (1, 2), mode="reflect"),
    "aten::type_as": lambda x: x.long().type_as(x),
    "aten::unique_dim": lambda x: torch.unique(x.round(), dim=0),
    "aten::upsample_bicubic2d": lambda x: F.interpolate(x[None, None], (7, 9), mode="bicubic"),
    "prims::resize": lambda x: x.clone().resize_(2, 2),
}
"""One model for a name or for several of a kind: of a tensor of shape [n, 4]."""
MEANINGS: dict[str, Callable[[Tensor], Tensor]] = {
    "onnx_symbolic::_symbolic": lambda x: x + x,
    "onnx_symbolic::_symbolic_multi_out": lambda x: x[:, 2:],
}
"""What the nodes compute for which PyTorch gives zeros."""


def test_each_name_has_a_way_into_a_file() -> None:
    assert [name for name in NAMES if way_of(name) is None] == []


@pytest.mark.parametrize("name", MODELS)
def test_a_name_that_is_run_gives_what_pytorch_gives(name: str) -> None:
    model = MODELS[name]
    if name in SCRIPTED:
        model = torch.jit.script(model)
    dynamic = {"x": {0: "n"}} if name.startswith("python::") and "scan" not in name else None
    example = torch.randn(4, 4)
    program = sardonyx.export(model, (example,), input_names=["x"], dynamic_axes=dynamic)
    for size in (2, 4, 7) if dynamic else (4,):
        x = torch.randn(size, 4)
        found, expected = program(x), MEANINGS.get(name, model)(x)
        torch.testing.assert_close(found, expected, check_stride=False)


def test_the_list_is_whole() -> None:
    assert len(NAMES) == len(set(NAMES)) == 585
    assert not [name for name in MODELS if name not in NAMES]
    assert sum(way_of(name) in ("form", "decomposition") for name in NAMES) > 470
