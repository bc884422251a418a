"""Custom operators for real: built in C++ for PyTorch, run by ONNX Runtime in Python."""

from __future__ import annotations

import shutil

import pytest
import torch

import sardonyx
from sardonyx import symbolic_helper

SOURCE = """
#include <ATen/core/Tensor.h>
#include <ATen/ops/add.h>
#include <ATen/ops/mul.h>
#include <torch/library.h>
at::Tensor foo_forward(const at::Tensor& a, const at::Tensor& b, double attr1, int64_t attr2) {
  return at::add(at::mul(a, attr1), at::mul(b, attr2));
}
TORCH_LIBRARY(extend_cpp_ops, m) { m.def("foo_forward", &foo_forward); }
"""


@symbolic_helper.parse_args("v", "v", "f", "i")
def symbolic_foo_forward(g, input1, input2, attr1, attr2):
    return g.op("Add", g.op("Mul", input1, attr1), g.op("Mul", input2, float(attr2)))


@pytest.fixture(scope="module")
def cpp_operator(tmp_path_factory):
    if not (shutil.which("c++") or shutil.which("g++")) or not shutil.which("ninja"):
        pytest.skip("no C++ compiler, or no ninja")
    from torch.utils import cpp_extension

    try:
        cpp_extension.load_inline(
            "extend_cpp_ops",
            SOURCE,
            build_directory=str(tmp_path_factory.mktemp("cpp")),
            is_python_module=False,
            extra_cflags=["-O0"],
            no_implicit_headers=True,  # they would take a minute
        )
    except (RuntimeError, OSError) as error:
        pytest.skip(f"the compiler does not build extensions: {str(error).splitlines()[0]}")
    return torch.ops.extend_cpp_ops.foo_forward


@pytest.mark.parametrize("capture", ["auto", "trace"])
def test_an_operator_of_a_cpp_extension(cpp_operator, capture):
    class FooModel(torch.nn.Module):
        def forward(self, input1, input2):
            return cpp_operator(input1, input2, 0.5, 3)

    sardonyx.register_custom_op_symbolic("extend_cpp_ops::foo_forward", symbolic_foo_forward, 9)
    x = torch.randn(2, 3)
    sardonyx.export(FooModel(), (x, x), capture=capture, verify=True)


def test_onnx_runtime_is_given_the_operator():
    extensions = pytest.importorskip(
        "onnxruntime_extensions", reason="Python operators need onnxruntime-extensions"
    )

    @extensions.onnx_op(
        op_type="SardonyxScaled",
        inputs=[extensions.PyCustomOpDef.dt_float],
        outputs=[extensions.PyCustomOpDef.dt_float],
        attrs={"factor": extensions.PyCustomOpDef.dt_float},
    )
    def scaled(x, **attributes):
        return x * attributes["factor"]

    @torch.library.custom_op("extend_kernels::scaled", mutates_args=())
    def scaled_in_torch(x: torch.Tensor, factor: float) -> torch.Tensor:
        return x * factor

    scaled_in_torch.register_fake(lambda x, factor: torch.empty_like(x))
    sardonyx.register_custom_op_symbolic(
        "extend_kernels::scaled",
        lambda g, x, factor: g.op("ai.onnx.contrib::SardonyxScaled", x, factor_f=factor),
        9,
    )
    program = sardonyx.export(
        lambda x: scaled_in_torch(x, 2.5) + 1,
        (torch.randn(2, 3),),
        input_names=["x"],
        dynamic_axes={"x": {0: "batch"}},
        custom_op_libraries=[extensions.get_library_path()],
        verify=True,
    )
    torch.testing.assert_close(program(torch.ones(5, 3)), torch.full((5, 3), 3.5))


def test_a_library_that_is_not_there():
    with pytest.raises(sardonyx.NotRunnableError, match=r"missing\.so"):
        sardonyx.export(
            torch.nn.ReLU(), (torch.randn(2),), custom_op_libraries=["missing.so"], verify=True
        )
