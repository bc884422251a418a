import numpy as np
import onnx_ir as ir
import torch

from sardonyx.lower.weights import TorchTensor
from sardonyx.optimize.deduplicate_constants import DeduplicateConstants
from tests.optimize.comparison import check, floats, parse


def with_tensors(model: ir.Model, **tensors: torch.Tensor) -> ir.Model:
    for name, tensor in tensors.items():
        model.graph.initializers[name].const_value = TorchTensor(tensor, name)
    return model


THREE = "g (float[3] x) => (float[3] y) { p = Add(x, a) q = Add(p, b) y = Add(q, c) }"


def three(**arrays: np.ndarray) -> ir.Model:
    return parse(THREE, initializers=arrays)


def test_small_constants_merge_by_value():
    model = three(a=floats(3), b=floats(3), c=floats(3, seed=1))
    check(DeduplicateConstants(), model, {"x": floats(3)})
    assert list(model.graph.initializers) == ["a", "c"]


def test_zeros_of_either_sign_stay_apart():
    model = three(a=np.zeros(3, np.float32), b=-np.zeros(3, np.float32), c=floats(3))
    DeduplicateConstants()(model)
    assert len(model.graph.initializers) == 3


def test_tied_weights_merge_and_equal_parameters_do_not():
    weight = torch.ones(3)
    model = with_tensors(
        three(a=floats(3), b=floats(3), c=floats(3)), a=weight, b=weight.view(3), c=torch.ones(3)
    )
    check(DeduplicateConstants(), model, {"x": floats(3)})
    assert list(model.graph.initializers) == ["a", "c"]


def test_other_views_of_the_same_memory_stay_apart():
    storage = torch.arange(9.0)
    model = with_tensors(
        three(a=floats(3), b=floats(3), c=floats(3)),
        a=storage[:3],
        b=storage[3:6],
        c=storage[:6:2],
    )
    check(DeduplicateConstants(), model, {"x": floats(3)})
    assert len(model.graph.initializers) == 3


def test_large_constants_are_not_read():
    class Unreadable(ir.Tensor):
        def tobytes(self) -> bytes:
            raise AssertionError("a large constant was read")

        numpy = tobytes

    array = floats(1000)
    model = three(a=floats(3), b=floats(3), c=floats(3))
    for name in "ab":
        model.graph.initializers[name].const_value = Unreadable(array)
    model.graph.initializers["c"].const_value = Unreadable(array.copy())
    DeduplicateConstants()(model)
    assert list(model.graph.initializers) == ["a", "c"]


def test_inputs_and_outputs_stay():
    model = parse(
        """g (float[3] x, float[3] a) => (float[3] y, float[3] c) {
            p = Add(x, a) y = Add(p, b) c = Identity(d) }""",
        initializers={"a": floats(3), "b": floats(3), "d": floats(3)},
    )
    check(DeduplicateConstants(), model, {"x": floats(3)})
    assert list(model.graph.initializers) == ["a", "b"]


def test_body_uses_the_constant_outside_it_and_not_of_its_sibling():
    def branch(name: str, *constants: str) -> str:
        body = f"{name}0 = Identity(x) "
        for index, constant in enumerate(constants):
            body += f"{name}{index + 1} = Mul({name}{index}, {constant}) "
        return f"{name} () => (float[3] {name}{len(constants)}) {{ {body} }}"

    model = parse(
        f"""g (float[3] x, bool c) => (float[3] y) {{
            w = Add(x, outer)
            y = If (c) <
                then_branch = {branch("t", "outer", "outer")},
                else_branch = {branch("e", "outer")}>
        }}""",
        initializers={"outer": floats(3)},
    )
    outer = model.graph.initializers["outer"]
    bodies = {graph.name: graph for graph in model.graph.subgraphs()}
    for name, seed in (("t", 0), ("e", 1)):
        own = ir.Value(name=f"{name}_own", const_value=ir.tensor(floats(3, seed=seed)))
        own.shape, own.type = outer.shape, outer.type
        bodies[name].register_initializer(own)
        list(bodies[name])[-1].replace_input_with(1, own)
    runs = [{"x": floats(3), "c": np.array(value)} for value in (True, False)]
    check(DeduplicateConstants(), model, *runs)
    assert {name: list(body.initializers) for name, body in bodies.items()} == {
        "t": [],
        "e": ["e_own"],
    }
