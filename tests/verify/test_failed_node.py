"""What ONNX Runtime refuses is told with the module and the line of the model."""

from __future__ import annotations

import pytest
import torch

import sardonyx
from sardonyx.errors import NotRunnableError
from sardonyx.verify.onnxruntime_session import Session


class Sixth(torch.nn.Module):
    def forward(self, x):
        return x + torch.nonzero(x > 100)[5, 0]


class Unknown(torch.nn.Module):
    def forward(self, x):
        return torch.onnx.ops.symbolic("my::Foo", (x,), dtype=x.dtype, shape=x.shape)


class Around(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x.relu()) * 2


def test_a_node_that_fails_in_a_run():
    program = sardonyx.export(Around(Sixth()), (torch.full((5, 4), 1000.0),))
    with pytest.raises(NotRunnableError) as failure:
        program(torch.zeros(5, 4))
    lines = str(failure.value).splitlines()
    (place,) = [line for line in lines if line.startswith("  at ")]
    assert "inner · tests/" in place and "/test_failed_node.py:" in place
    assert "torch.nonzero(x > 100)[5, 0]" in place


@pytest.mark.parametrize("in_a_file", [False, True])
def test_an_operator_that_is_not_known(in_a_file, tmp_path):
    program = sardonyx.export(Around(Unknown()), (torch.zeros(5, 4),))
    program.save(tmp_path / "model.onnx")
    line = r"inner · tests/.*/test_failed_node\.py:\d+   return torch\.onnx\.ops\.symbolic"
    with pytest.raises(NotRunnableError, match=line):
        if in_a_file:
            Session(tmp_path / "model.onnx")
        else:
            program(torch.zeros(5, 4))


def test_a_model_without_provenance_is_refused_all_the_same(tmp_path):
    program = sardonyx.export(Around(Sixth()), (torch.full((5, 4), 1000.0),))
    proto = program.model_proto
    for node in proto.graph.node:
        node.ClearField("metadata_props")
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(NotRunnableError) as failure:
        Session(path).run({"x": torch.zeros(5, 4)})
    assert "\n  at " not in str(failure.value)


def test_a_file_that_fails_where_pytorch_runs_is_a_disagreement():
    """With the note that explains it: the branch of the example's size has too short a table."""

    def shifted(x):
        table = torch.arange(12.0)
        if x.shape[0] > 12:
            table = torch.arange(40.0)
        return x + table[: x.shape[0]]

    program = sardonyx.export(shifted, (torch.randn(5),), dynamic_axes={"x": {0: "b"}}, verify=True)
    with pytest.raises(sardonyx.VerificationError, match="PyTorch runs at example") as failure:
        program.verify((torch.randn(13),))
    assert not isinstance(failure.value, NotRunnableError)
    assert "the recording holds where b <= 12" in str(failure.value)
