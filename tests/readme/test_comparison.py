"""The README's comparison table: every cell is what the exporter beside it does, run here.

A row is `@row(title, sardonyx=..., dynamo=..., torchscript=...)` over the test that shows it; the
README must hold exactly these rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import nn

import sardonyx
from tests.readme.exporters import Exporters, Outcome

README = Path(__file__).parents[2] / "README.md"
ROWS: dict[str, list[str]] = {}
"""The cells of every tested row by its id, in the order of this file."""


def row_id(title: str) -> str:
    return re.sub(r"\W+", "_", title.lower()).strip("_")


def row(title: str, *, sardonyx: str, dynamo: str, torchscript: str) -> Callable[[object], object]:
    def register(test: object) -> object:
        assert test.__name__ == f"test_{row_id(title)}", f"call it test_{row_id(title)}"
        ROWS[row_id(title)] = [title, sardonyx, dynamo, torchscript]
        return test

    return register


@pytest.fixture
def export(tmp_path: Path) -> Exporters:
    torch.manual_seed(0)
    return Exporters(tmp_path)


def line_of(text: str) -> str:
    """`test_comparison.py:57`, the line of this file that holds `text` first."""
    lines = Path(__file__).read_text().splitlines()
    return f"test_comparison.py:{next(n for n, line in enumerate(lines, 1) if text in line)}"


def linear() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 3), nn.GELU()).eval()


def test_the_table_is_what_is_tested() -> None:
    table = README.read_text().split("| torch.onnx, `dynamo=True` |")[1].split("\n\n")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]
    ]
    assert {row_id(cells[0]): cells for cells in rows} == ROWS


# -- Numbers ---------------------------------------------------------------------------------------


class WriteDiagonal(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y.diagonal().fill_(7.0)
        return y


@row(
    "Write to `y.diagonal()`",
    sardonyx="correct",
    dynamo="no export",
    torchscript="**wrong**",
)
def test_write_to_y_diagonal(export: Exporters) -> None:
    model, x = WriteDiagonal(), torch.randn(4, 4)
    assert export.sardonyx(model, x).agrees(model, x) == [True]
    assert "functional graph" in str(export.dynamo(model, x).error)
    assert export.torchscript(model, x).agrees(model, x) == [False]


class WriteViews(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        transposed = x * 2
        transposed.t()[0].add_(5.0)
        chunked = x * 3
        chunked.chunk(2, dim=1)[0].mul_(x[:, :2])
        framed = torch.zeros(4, 8)
        torch.mul(x, 2, out=framed[:, 2:6])
        return transposed, chunked, framed


@row(
    "Write to `y.t()`, `y.chunk(2)[0]`, `out=y[:, 2:6]`",
    sardonyx="correct",
    dynamo="correct",
    torchscript="**wrong**",
)
def test_write_to_y_t_y_chunk_2_0_out_y_2_6(export: Exporters) -> None:
    model, x = WriteViews(), torch.randn(4, 4)
    assert export.sardonyx(model, x).agrees(model, x) == [True] * 3
    assert export.dynamo(model, x).agrees(model, x) == [True] * 3
    assert export.torchscript(model, x).agrees(model, x) == [False] * 3


class Numbers(nn.Module):
    def forward(self, x: torch.Tensor, n: int) -> tuple[torch.Tensor, torch.Tensor]:
        return x * n, x * x.sum().item()


@row(
    "An `int` argument; a number from `.item()`",
    sardonyx="both follow the inputs",
    dynamo="**the argument stays the example's**",
    torchscript="**the `.item()` stays the example's**",
)
def test_an_int_argument_a_number_from_item(export: Exporters) -> None:
    model, x = Numbers(), torch.randn(4)
    example, other = (x, 3), (x + 1.5, 5)
    assert export.sardonyx(model, *example).agrees(model, *other) == [True, True]
    dynamo = export.dynamo(model, *example)
    assert len(dynamo.input_names) == 1
    assert dynamo.agrees(model, *other) == [False, True]
    assert dynamo.agrees(model, other[0], example[1]) == [True, True]
    torchscript = export.torchscript(model, *example)
    assert torchscript.agrees(model, *example) == [True, True]
    assert torchscript.agrees(model, *other) == [True, False]


class Running(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x)
        return self.total * 2


@row(
    "A buffer that `forward` writes",
    sardonyx="correct; a note, or its new value with `state_outputs=True`",
    dynamo="correct; the new value is lost",
    torchscript="**wrong**, and your buffer is changed",
)
def test_a_buffer_that_forward_writes(export: Exporters) -> None:
    x = torch.ones(3)
    plain = export.sardonyx(Running(), x)
    assert plain.agrees(Running(), x) == [True]
    assert "buffer total" in plain.program.notes[0]
    stateful = export.sardonyx(Running(), x, state_outputs=True)
    assert stateful.output_names == ["output", "total.out"]
    assert torch.equal(torch.from_numpy(stateful.run(x)[1]), x)
    dynamo = export.dynamo(Running(), x)
    assert dynamo.agrees(Running(), x) == [True]
    assert len(dynamo.output_names) == 1 and not any("total" in text for text in dynamo.said)
    model = Running()
    assert export.torchscript(model, x).agrees(Running(), x) == [False]
    assert torch.equal(model.total, x)


# -- Sizes -----------------------------------------------------------------------------------------


@row(
    "`TransformerEncoderLayer`, dynamic batch, example of batch 1",
    sardonyx="correct and dims",
    dynamo="correct; the file says the output's batch is 1",
    torchscript="no export",
)
def test_transformerencoderlayer_dynamic_batch_example_of_batch_1(export: Exporters) -> None:
    model = nn.TransformerEncoderLayer(4, 1, 4, batch_first=True).eval()
    example, other = torch.randn(1, 3, 4), torch.randn(5, 7, 4)
    options = {"input_names": ["src"], "dynamic_axes": {"src": {0: "batch", 1: "time"}}}
    ours = export.sardonyx(model, example, **options)
    assert ours.agrees(model, other) == [True]
    assert ours.output_dims == ["batch", "time", 4]
    dynamo = export.dynamo(model, example, **options)
    assert dynamo.agrees(model, other) == [True]
    assert dynamo.output_dims == [1, "time", 4]
    assert isinstance(export.torchscript(model, example, **options).error, TypeError)


class Recurrence(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.zeros(4)
        for step in range(x.shape[0]):  # the sizes are Python's
            h = torch.tanh(h + x[step])
        return h


@row(
    "A dynamic dim that the model specializes",
    sardonyx="refused, with the line of the model",
    dynamo="refused, without the line",
    torchscript="**wrong** at other sizes",
)
def test_a_dynamic_dim_that_the_model_specializes(export: Exporters) -> None:
    model, x = Recurrence(), torch.randn(2, 4)
    options = {"input_names": ["x"], "dynamic_axes": {"x": {0: "time"}}}
    refusal = export.sardonyx(model, x, **options).error
    assert isinstance(refusal, sardonyx.DynamicDimError)
    assert "'time'" in str(refusal) and line_of("# the sizes are Python's") in str(refusal)
    refusal = export.dynamo(model, x, **options).error
    assert "inferred a static shape of 2" in str(refusal)
    assert "test_comparison.py" not in str(refusal)
    torchscript = export.torchscript(model, x, **options)
    assert torchscript.agrees(model, x) == [True]
    assert torchscript.agrees(model, torch.randn(5, 4)) == [False]


class BySize(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] > 3:  # a size decides
            return x * 2
        return x + 1


@row(
    "`if x.shape[0] > 3:`, that dim dynamic",
    sardonyx="one branch; a note of the sizes it holds for, and the line",
    dynamo="one branch, silently",
    torchscript="one branch, with a warning",
)
def test_if_x_shape_0_3_that_dim_dynamic(export: Exporters) -> None:
    model, x, other = BySize(), torch.randn(2, 4), torch.randn(5, 4)
    options = {"input_names": ["x"], "dynamic_axes": {"x": {0: "batch"}}}

    def holds_one_branch(outcome: Outcome) -> bool:
        return [*outcome.agrees(model, x), *outcome.agrees(model, other)] == [True, False]

    ours = export.sardonyx(model, x, **options)
    assert holds_one_branch(ours)
    assert "batch <= 3" in ours.program.notes[0]
    assert line_of("# a size decides") in ours.program.notes[0]
    dynamo = export.dynamo(model, x, **options)
    assert holds_one_branch(dynamo)
    assert not any("test_comparison.py" in text or "shape[0]" in text for text in dynamo.said)
    torchscript = export.torchscript(model, x, **options)
    assert holds_one_branch(torchscript)
    assert any("Python boolean" in text for text in torchscript.said)


# -- Names and places ------------------------------------------------------------------------------


@dataclass
class Result:
    logits: torch.Tensor
    loss: torch.Tensor


class Named(nn.Module):
    def __init__(self, kind: type) -> None:
        super().__init__()
        self.kind = kind

    def forward(self, x: torch.Tensor) -> object:
        return self.kind(logits=x * 2, loss=x.sum())


@row(
    "A dict or a dataclass as output",
    sardonyx="its keys name the outputs",
    dynamo="operators name them; no export of the dataclass",
    torchscript="numbers name them; no export of the dataclass",
)
def test_a_dict_or_a_dataclass_as_output(export: Exporters) -> None:
    x = torch.randn(2)
    assert export.sardonyx(Named(dict), x).output_names == ["logits", "loss"]
    assert export.sardonyx(Named(Result), x).output_names == ["logits", "loss"]
    assert export.dynamo(Named(dict), x).output_names == ["mul", "sum_1"]
    assert "register a pytree" in str(export.dynamo(Named(Result), x).error)
    assert all(name.isdigit() for name in export.torchscript(Named(dict), x).output_names)
    assert "unsupported type: Result" in str(export.torchscript(Named(Result), x).error)


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(self.embed(x))  # where nodes come from


@row(
    "Provenance stored on a node",
    sardonyx="module and line",
    dynamo="module, line, and absolute paths of your machine",
    torchscript="module",
)
def test_provenance_stored_on_a_node(export: Exporters) -> None:
    model, x, here = Encoder(), torch.randn(2, 4), str(Path(__file__).parent).encode()
    ours = export.sardonyx(model, x)
    said = [{p.key: p.value for p in node.metadata_props} for node in ours.proto.graph.node]
    assert [s.get("sardonyx.module") for s in said] == ["embed", None]
    for props in said:
        assert props["sardonyx.source"].endswith(line_of("# where nodes come from"))
    assert here not in ours.path.read_bytes()
    dynamo = export.dynamo(model, x)
    props = {p.key: p.value for p in dynamo.proto.graph.node[0].metadata_props}
    assert "embed" in props["pkg.torch.onnx.name_scopes"]
    assert "where nodes come from" in props["pkg.torch.onnx.stack_trace"]
    assert here in dynamo.path.read_bytes()
    torchscript = export.torchscript(model, x)
    assert torchscript.proto.graph.node[0].name == "/embed/Gemm"
    assert b"test_comparison.py" not in torchscript.path.read_bytes()


class Decompositions(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        values = torch.linalg.eigvals(x).abs()  # the first without a form
        return values + torch.poisson(x.abs())  # the second without a form


@row(
    "Two operators without an ONNX form",
    sardonyx="refused: both, each with its line",
    dynamo="refused: the first, without its line",
    torchscript="refused: the first, without its line",
)
def test_two_operators_without_an_onnx_form(export: Exporters) -> None:
    model, x = Decompositions(), torch.randn(3, 3)
    refusal = export.sardonyx(model, x).error
    assert isinstance(refusal, sardonyx.UnsupportedOperatorError)
    for part in ("linalg_eig", "poisson"):
        assert part in str(refusal)
    for place in ("# the first without a form", "# the second without a form"):
        assert line_of(place) in str(refusal)
    for rival in (export.dynamo(model, x), export.torchscript(model, x)):
        assert "linalg_eig" in str(rival.error) and "poisson" not in str(rival.error)
        assert "test_comparison.py" not in str(rival.error)


# -- The file and the model ------------------------------------------------------------------------


@row(
    "`opset_version=26`",
    sardonyx="opset 26",
    dynamo="**a file that says 18 and does not load**",
    torchscript="refused",
)
def test_opset_version_26(export: Exporters) -> None:
    model, x = linear(), torch.randn(2, 4)
    ours = export.sardonyx(model, x, opset_version=26)
    assert ours.opset == 26 and ours.agrees(model, x) == [True]
    dynamo = export.dynamo(model, x, opset_version=26)
    assert dynamo.opset == 18
    with pytest.raises(Exception, match="No Op registered for Gelu"):
        dynamo.run(x)
    refusal = export.torchscript(model, x, opset_version=26).error
    assert "Unsupported onnx_opset_version" in str(refusal)


@row(
    "`opset_version=13`",
    sardonyx="opset 13",
    dynamo="a file that says 18",
    torchscript="opset 13",
)
def test_opset_version_13(export: Exporters) -> None:
    model, x = linear(), torch.randn(2, 4)
    sardonyx = export.sardonyx(model, x, opset_version=13)
    assert sardonyx.opset == 13 and sardonyx.agrees(model, x) == [True]
    assert export.dynamo(model, x, opset_version=13).opset == 18
    torchscript = export.torchscript(model, x, opset_version=13)
    assert torchscript.opset == 13 and torchscript.agrees(model, x) == [True]


class Conditional(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 3, (x,))


class Branches(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if bool(x.sum() > 0):
            y = x * 2
        else:
            y = x - 3
        return y


@row(
    "`torch.cond`; a scripted `if`",
    sardonyx="both exported",
    dynamo="`torch.cond` exported",
    torchscript="the scripted `if` exported",
)
def test_torch_cond_a_scripted_if(export: Exporters) -> None:
    x = torch.ones(2, 4)
    scripted = torch.jit.script(Branches())
    own = export.sardonyx(Conditional(), x)
    assert [*own.agrees(Conditional(), x), *own.agrees(Conditional(), -x)] == [True, True]
    script = export.sardonyx(scripted, x)
    assert [*script.agrees(Branches(), x), *script.agrees(Branches(), -x)] == [True, True]
    dynamo = export.dynamo(Conditional(), x)
    assert [*dynamo.agrees(Conditional(), x), *dynamo.agrees(Conditional(), -x)] == [True, True]
    assert export.dynamo(scripted, x).error is not None
    torchscript = export.torchscript(scripted, x)
    assert [*torchscript.agrees(Branches(), x), *torchscript.agrees(Branches(), -x)] == [True, True]
    assert export.torchscript(Conditional(), x).error is not None


class WritesInALoop(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(x)
        row = out[0]
        for i in range(x.size(0)):
            row += x[i]
        return out


@row(
    "A scripted loop that writes `row = out[0]`",
    sardonyx="correct",
    dynamo="no export",
    torchscript="**wrong**",
)
def test_a_scripted_loop_that_writes_row_out_0(export: Exporters) -> None:
    x = torch.ones(3, 4)
    scripted = torch.jit.script(WritesInALoop())
    assert export.sardonyx(scripted, x).agrees(WritesInALoop(), x) == [True]
    assert export.dynamo(scripted, x).error is not None
    assert export.torchscript(scripted, x).agrees(WritesInALoop(), x) == [False]


class Noisy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.normalize = nn.BatchNorm1d(4).eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.normalize(x) + torch.rand_like(x)


@row(
    "Your model and session afterwards",
    sardonyx="as before",
    dynamo="as before",
    torchscript="other submodule modes, other random numbers",
)
def test_your_model_and_session_afterwards(export: Exporters) -> None:
    x = torch.randn(2, 4)

    def changes(exporter: Callable[..., Outcome]) -> tuple[bool, bool]:
        model = Noisy().train()
        model.normalize.eval()
        generator = torch.get_rng_state()
        assert exporter(model, x).error is None
        assert model.training
        return model.normalize.training, not torch.equal(generator, torch.get_rng_state())

    assert changes(export.sardonyx) == (False, False)
    assert changes(export.dynamo) == (False, False)
    assert changes(export.torchscript) == (True, True)
