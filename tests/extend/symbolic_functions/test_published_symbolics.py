"""Symbolic functions in the way that public projects write them."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import sardonyx
from sardonyx import symbolic_helper as sym_help
from sardonyx.errors import SymbolicFunctionError, UnsupportedOperatorError

X = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
CAPTURES = pytest.mark.parametrize("capture", ["export", "trace"])


def exported(model, name, symbolic, *inputs, **options):
    sardonyx.register_custom_op_symbolic(name, symbolic, 9)
    options.setdefault("verify", True)
    return sardonyx.export(model, inputs or (X,), **options)


class Suppression(torch.autograd.Function):
    @staticmethod
    def forward(ctx, boxes, scores, iou_threshold, max_num):
        return scores.argsort(descending=True)  # of boxes that do not overlap

    @staticmethod
    def symbolic(g, boxes, scores, iou_threshold, max_num):
        assert sardonyx.is_in_onnx_export()
        assert torch.onnx.is_in_onnx_export()
        boxes = sym_help._unsqueeze_helper(g, boxes, [0])
        scores = sym_help._unsqueeze_helper(g, sym_help._unsqueeze_helper(g, scores, [0]), [0])
        most = sym_help._size_helper(g, boxes, g.op("Constant", value_t=torch.tensor(1)))
        iou = g.op("Constant", value_t=torch.tensor([iou_threshold], dtype=torch.float))
        found = g.op("NonMaxSuppression", boxes, scores, most, iou)
        last = sym_help._slice_helper(g, found, axes=[1], starts=[2], ends=[3])
        return sym_help._squeeze_helper(g, last, [1])


@CAPTURES
def test_non_maximum_suppression(capture):
    corners = torch.arange(6.0)[:, None] * 2
    boxes = torch.cat([corners, corners, corners + 1, corners + 1], 1)
    scores = torch.tensor([0.3, 0.9, 0.1, 0.7, 0.5, 0.2])
    program = sardonyx.export(
        lambda boxes, scores: Suppression.apply(boxes, scores, 0.5, -1),
        (boxes, scores),
        capture=capture,
        verify=True,
    )
    assert "NonMaxSuppression" in [node.op_type for node in program.model.graph]


def upsample(mode):
    def symbolic(g, input, output_size, *args):
        scales, align_corners = sym_help._get_interpolate_attributes(g, mode, args)
        aligned = sym_help._maybe_get_scalar(align_corners)
        attributes = {
            "mode_s": mode,
            "nearest_mode_s": "floor",
            "cubic_coeff_a_f": -0.75,
            "coordinate_transformation_mode_s": "asymmetric"
            if mode == "nearest"
            else ("align_corners" if aligned else "pytorch_half_pixel"),
        }
        empty = g.op("Constant", value_t=torch.tensor([], dtype=torch.float32))
        if scales is not None:
            return g.op("Resize", input, empty, scales, **attributes)
        first = sym_help._slice_helper(g, g.op("Shape", input), axes=[0], ends=[2], starts=[0])
        size = g.op("Cast", output_size, to_i=sym_help.cast_pytorch_to_onnx["Long"])
        size = g.op("Concat", first, size, axis_i=0)
        return g.op("Resize", input, empty, empty, size, **attributes)

    return symbolic


@CAPTURES
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("how", [{"scale_factor": 2}, {"size": (12, 16)}], ids=str)
def test_upsample(mode, how, capture):
    symbolic = upsample(mode.removeprefix("bi"))
    exported(nn.Upsample(mode=mode, **how), f"aten::upsample_{mode}2d", symbolic, capture=capture)


def test_scales_of_sizes_and_factors():
    def by_size(g, input, output_size, scale_factors):
        scales = sym_help._interpolate_size_to_scales(g, input, output_size, 4)
        factor = g.op("Constant", value_t=torch.tensor(2.0))
        assert sym_help._interpolate_get_scales(g, factor, 4).type().sizes() == [4]
        return g.op(
            "Resize",
            input,
            None,
            scales,
            mode_s="nearest",
            nearest_mode_s="floor",
            coordinate_transformation_mode_s="asymmetric",
        )

    exported(nn.Upsample(size=(16, 24)), "aten::upsample_nearest2d", by_size)


@pytest.mark.parametrize("opset", [17, 20, 23])
@pytest.mark.parametrize("word", ["bilinear", "linear"])
def test_the_modes_of_grid_sample_have_the_words_of_the_opset(word, opset):
    def grid_sampler(g, input, grid, mode, padding_mode, align_corners):
        return g.op("GridSample", input, grid, align_corners_i=align_corners, mode_s=word)

    grid = torch.rand(2, 5, 5, 2, generator=torch.Generator().manual_seed(1)) * 2 - 1
    exported(
        lambda x, grid: F.grid_sample(x, grid, align_corners=True),
        "aten::grid_sampler",
        grid_sampler,
        X,
        grid,
        opset_version=opset,
    )


@pytest.mark.parametrize(
    ("model", "name", "symbolic"),
    [
        (
            lambda x: x.sort(1, True),
            "aten::sort",
            lambda g, self, dim, descending: sym_help._sort_helper(g, self, dim, descending),
        ),
        (
            lambda x: x.argmax(1),
            "aten::argmax",
            lambda g, self, dim, keepdim: sym_help._argmin_argmax_helper(
                g, self, dim, False, "ArgMax"
            ),
        ),
        (
            lambda x: x.argmin(),
            "aten::argmin",
            lambda g, self, dim, keepdim: sym_help._argmin_argmax_helper(
                g, self, dim, False, "ArgMin"
            ),
        ),
        (
            lambda x: x.unbind(1),
            "aten::unbind",
            lambda g, self, dim: sym_help._unbind_helper(g, self, dim, 3),
        ),
        (
            lambda x: x.unbind(1)[1],
            "aten::unbind",
            lambda g, self, dim: sym_help._unbind_helper(g, self, dim),
        ),
        (
            lambda x: x.lt(x * x),
            "aten::lt",
            lambda g, self, other: sym_help._lt_helper(g, self, other),
        ),
    ],
    ids=["sort", "argmax", "argmin", "unbind", "unbind to a sequence", "lt"],
)
def test_helpers_that_write_nodes(model, name, symbolic):
    exported(model, name, symbolic)


def test_the_opset_by_its_former_names():
    def relu(g, self):
        assert sym_help._export_onnx_opset_version == g.opset == 18
        assert sym_help.GLOBALS.export_onnx_opset_version == 18
        return g.op("Relu", self)

    exported(nn.ReLU(), "aten::relu", relu, opset_version=18)


def test_lists_and_constants_of_torchscript():
    def relu(g, self):
        first, second = g.op("prim::ListUnpack", g.op("prim::ListConstruct", self, 1), outputs=2)
        assert sym_help._is_none(g.op("prim::Constant"))
        assert sym_help._get_const(second, "i", "second") == 1
        zero = g.op("prim::Constant", value_t=torch.tensor(0.0))
        return g.op("Max", first, zero)

    program = exported(nn.ReLU(), "aten::relu", relu)
    assert {node.domain for node in program.model.graph} == {""}


def test_lists_of_attributes_in_whatever_they_are_held():
    def permute(g, self, dims):
        order = sym_help._get_const(dims, "t", "dims")
        g.op("Transpose", self, perm_i=range(4))
        g.op("Transpose", self, perm_i=order)
        return g.op("Transpose", self, perm_i=order.numpy())

    exported(lambda x: x.permute(0, 2, 3, 1), "aten::permute", permute)


def test_arguments_that_only_steer_pytorch_need_not_be_taken():
    def layer_norm(g, input, normalized_shape, weight, bias, eps):
        return g.op("LayerNormalization", input, weight, bias, epsilon_f=eps)

    exported(nn.LayerNorm(8), "aten::layer_norm", layer_norm, capture="export")


def test_an_argument_of_another_kind():
    @sym_help.parse_args("v", "s", "none")
    def softmax(g, self, dim, dtype=None):
        return self

    with pytest.raises(SymbolicFunctionError, match="'dim' is not a string: 1"):
        exported(nn.Softmax(1), "aten::softmax", softmax)


def test_a_function_that_is_registered_is_not_advised():
    with pytest.raises(UnsupportedOperatorError) as error:
        exported(nn.ReLU(), "aten::relu", lambda g, self: sym_help._unimplemented("relu", "why"))
    assert "register_custom_op_symbolic" not in str(error.value)


def batch_norm(g, input, weight, bias, mean, var, training, momentum, eps, cudnn_enabled):
    trains = sym_help._get_const(training, "b", "training")
    results = g.op(
        "BatchNormalization",
        input,
        weight,
        bias,
        mean,
        var,
        epsilon_f=eps,
        momentum_f=1 - sym_help._get_const(momentum, "f", "momentum"),
        training_mode_i=int(trains),
        outputs=3 if trains else 1,
    )
    return results[0] if trains else results


@CAPTURES
@pytest.mark.parametrize("mode", [sardonyx.TrainingMode.TRAINING, sardonyx.TrainingMode.EVAL])
def test_batch_normalization_in_training_too(mode, capture):
    """ONNX Runtime writes the statistics over weights of the file that are equal to them, as those
    of a new module are to its weight and bias: it gets copies."""
    model = nn.BatchNorm2d(3)
    program = exported(model, "aten::batch_norm", batch_norm, training=mode, capture=capture)
    *copies, node = program.model.graph
    assert node.op_type == "BatchNormalization"
    trains = mode is sardonyx.TrainingMode.TRAINING
    assert node.attributes.get_int("training_mode", 0) == trains == bool(copies)
    for _ in range(2):
        torch.testing.assert_close(program(X), model.train(trains)(X).detach())


def test_statistics_that_a_form_does_not_give():
    with pytest.raises(UnsupportedOperatorError, match="result number 4 has no ONNX form here"):
        exported(
            nn.BatchNorm2d(3),
            "aten::batch_norm",
            batch_norm,
            training=sardonyx.TrainingMode.TRAINING,
            state_outputs=True,
        )


def test_shapes_as_tensors():
    from torch.onnx.operators import reshape_from_tensor_shape, shape_as_tensor

    def flat(x):
        first = shape_as_tensor(x)[:1]
        return reshape_from_tensor_shape(x, torch.cat([first, torch.tensor([-1])]))

    sardonyx.export(flat, X, verify=True)


def test_quantized_args_without_a_quantized_result():
    @sym_help.quantized_args(True, quantize_output=False)
    def relu(g, self):
        scale, zero = torch.tensor(0.1), torch.tensor(10, dtype=torch.uint8)
        scale, zero = (g.op("Constant", value_t=t) for t in (scale, zero))
        quantized = sym_help.quantize_helper(g, self, scale, zero)
        return same(g, quantized)

    @sym_help.quantized_args(True, quantize_output=False)
    def same(g, self):
        return g.op("Relu", self)

    ops = exported(nn.ReLU(), "aten::relu", relu, verify=False).model.graph
    assert [n.op_type for n in ops if n.op_type != "Constant"][-1] == "Relu"


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
@pytest.mark.parametrize("capture", ["auto", "export", "trace"])
def test_a_model_that_quantizes_is_recorded(capture):
    class Model(nn.Module):
        def forward(self, x):
            quantized = torch.quantize_per_tensor(x, 0.1, 10, torch.quint8)
            return torch.dequantize(torch.relu(quantized))

    program = sardonyx.export(Model(), X, capture=capture, verify=True)
    assert "QuantizeLinear" in [node.op_type for node in program.model.graph]
