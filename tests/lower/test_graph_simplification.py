"""Folding: what depends on weights and constants only is computed once, in torch."""

from __future__ import annotations

import torch

import sardonyx


class Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(64, 64))
        self.scale = torch.nn.Parameter(torch.randn(64, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ (self.weight * self.scale.exp()).t()


def node_types(program: sardonyx.ONNXProgram) -> list[str]:
    return [node.op_type for node in program.model.graph if node.op_type != "Constant"]


def test_weights_are_folded() -> None:
    program = sardonyx.export(Scaled(), (torch.randn(2, 64),), verify=True)
    assert node_types(program) == ["MatMul"]


def test_folding_can_be_turned_off() -> None:
    program = sardonyx.export(
        Scaled(), (torch.randn(2, 64),), do_constant_folding=False, optimize=False, verify=True
    )
    assert {"Exp", "Mul"} <= set(node_types(program))
    assert set(program.model.graph.initializers) == {"weight", "scale"}


def test_what_would_grow_the_file_is_not_folded() -> None:
    class Tables(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.row = torch.nn.Parameter(torch.randn(1, 256))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.row.expand(256, 256) * 2

    program = sardonyx.export(Tables(), (torch.randn(256, 256),), verify=True)
    stored = sum(v.const_value.nbytes for v in program.model.graph.initializers.values())
    assert stored <= 256 * 4


def test_a_weight_with_two_readers_is_stored_once() -> None:
    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = torch.nn.Embedding(50, 32)
            self.head = torch.nn.Linear(32, 50, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.head(self.embed(ids))

    for capture in ("trace", "export"):
        program = sardonyx.export(
            Tied(), (torch.randint(0, 50, (2, 3)),), capture=capture, verify=True
        )
        assert list(program.model.graph.initializers) == ["embed.weight"]


def test_random_numbers_are_not_folded() -> None:
    program = sardonyx.export(lambda x: x + torch.rand(3), (torch.zeros(3),))
    assert not torch.equal(program(torch.zeros(3)), program(torch.zeros(3)))


def test_the_parameters_are_not_changed() -> None:
    model = Scaled()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    sardonyx.export(model, (torch.randn(2, 64),))
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())


def test_what_fails_in_a_branch_never_taken_is_left_to_it() -> None:
    class Lookup(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("table", torch.tensor([1.0, 2.0, 3.0]))

        def beyond(self, x: torch.Tensor) -> torch.Tensor:
            return self.table[torch.tensor([5])] + x

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 1e9, self.beyond, lambda x: x + 1, (x,))

    x = torch.tensor([1.0, -2.0, 3.0, 4.0])
    program = sardonyx.export(Lookup(), (x,))
    torch.testing.assert_close(program(x), x + 1)
