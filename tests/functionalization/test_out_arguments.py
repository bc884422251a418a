"""Results written to `out=`."""

import pytest
import torch

from tests.capture.agreement import CAPTURES, agree, refused


def x():
    return torch.arange(1.0, 13.0).reshape(3, 4)


def into(call, *shape, dtype=torch.float32):
    """`call(x, out)`; both what it returns and what `out` holds."""

    def run(x):
        out = torch.full(shape, -1, dtype=dtype)
        seen = out.detach()
        returned = call(x, out)
        return out, returned, seen, out + 1

    return run


ROWS = torch.tensor([2, 0])
SAME_SHAPE = {
    "add": into(lambda x, out: torch.add(x, 1, out=out), 3, 4),
    "add alpha": into(lambda x, out: torch.add(x, x, alpha=2, out=out), 3, 4),
    "mul broadcast": into(lambda x, out: torch.mul(x, x[0], out=out), 3, 4),
    "div rounding": into(lambda x, out: torch.div(x, 3, rounding_mode="floor", out=out), 3, 4),
    "matmul": into(lambda x, out: torch.matmul(x, x.t(), out=out), 3, 3),
    "mm": into(lambda x, out: torch.mm(x.t(), x, out=out), 4, 4),
    "bmm": into(lambda x, out: torch.bmm(x[None], x.t()[None], out=out), 1, 3, 3),
    "mv": into(lambda x, out: torch.mv(x, x[0], out=out), 3),
    "addmm": into(lambda x, out: torch.addmm(torch.ones(3, 3), x, x.t(), beta=2, out=out), 3, 3),
    "cat": into(lambda x, out: torch.cat([x, x], out=out), 6, 4),
    "stack": into(lambda x, out: torch.stack([x, x], 1, out=out), 3, 2, 4),
    "sum": into(lambda x, out: torch.sum(x, 1, out=out), 3),
    "mean": into(lambda x, out: torch.mean(x, 0, out=out), 4),
    "cumsum": into(lambda x, out: torch.cumsum(x, 1, out=out), 3, 4),
    "exp": into(lambda x, out: torch.exp(x / 9, out=out), 3, 4),
    "clamp": into(lambda x, out: torch.clamp(x, 2, 9, out=out), 3, 4),
    "where": into(lambda x, out: torch.where(x > 3, x, -x, out=out), 3, 4),
    "softmax": into(lambda x, out: torch.softmax(x, 1, out=out), 3, 4),
    "index_select": into(lambda x, out: torch.index_select(x, 0, ROWS, out=out), 2, 4),
    "gather": into(lambda x, out: torch.gather(x, 1, torch.tensor([[0], [3], [1]]), out=out), 3, 1),
    "take": into(lambda x, out: torch.take(x, torch.tensor([0, 7]), out=out), 2),
    "pow": into(lambda x, out: torch.pow(x, 2, out=out), 3, 4),
    "pow tensor": into(lambda x, out: torch.pow(x, x / 9, out=out), 3, 4),
    "tril": into(lambda x, out: torch.tril(x, out=out), 3, 4),
    "norm": into(lambda x, out: torch.linalg.vector_norm(x, dim=1, out=out), 3),
    "normalize": into(lambda x, out: torch.nn.functional.normalize(x, dim=1, out=out), 3, 4),
    "lerp": into(lambda x, out: torch.lerp(x, torch.ones(4), 0.5, out=out), 3, 4),
    "logical_not": into(lambda x, out: torch.logical_not(x > 3, out=out), 3, 4, dtype=torch.bool),
    "arange": into(lambda x, out: torch.arange(4, out=out), 4),
    "zeros": into(lambda x, out: torch.zeros(2, out=out), 2),
    "full": into(lambda x, out: torch.full((2,), 7, out=out), 2),
    "eye": into(lambda x, out: torch.eye(2, out=out), 2, 2),
    "linspace": into(lambda x, out: torch.linspace(0, 1, 5, out=out), 5),
}  # fmt: skip

OTHER_DTYPE = {
    "float64": into(lambda x, out: torch.add(x, 0.1, out=out), 3, 4, dtype=torch.float64),
    "float16": into(lambda x, out: torch.mul(x, 3, out=out), 3, 4, dtype=torch.float16),
    "bool to float": into(lambda x, out: torch.gt(x, 5, out=out), 3, 4),
    "bool to int": into(lambda x, out: torch.eq(x, 5, out=out), 3, 4, dtype=torch.int32),
    "int to float": into(lambda x, out: torch.add(x.long(), 1, out=out), 3, 4),
    "sum of halves in float": into(lambda x, out: torch.sum(x.half() * 300, 1, out=out), 3),
    "sum of ints in float": into(lambda x, out: torch.sum(x.long(), 1, out=out), 3),
    "mean of ints": into(lambda x, out: torch.mean(x.double(), 1, out=out), 3, dtype=torch.float64),
    "arange float": into(lambda x, out: torch.arange(4, out=out), 4, dtype=torch.float64),
    "int64 to int32": into(lambda x, out: torch.mul(x.long(), 2, out=out), 3, 4, dtype=torch.int32),
}


@pytest.mark.parametrize("capture", CAPTURES)
def test_every_out(capture):
    agree(SAME_SHAPE, x(), capture=capture)


@pytest.mark.parametrize("capture", CAPTURES)
def test_another_dtype(capture):
    agree(OTHER_DTYPE, x(), capture=capture)


def resized(x):
    out = torch.empty(0)
    torch.add(x, 1, out=out)
    out[0] = 5
    torch.mul(out, 2, out=out)
    wide = torch.empty(0, dtype=torch.float64)
    returned = torch.matmul(x.double(), x.t().double(), out=wide)
    returned[0, 0] = 1
    return out, wide, returned


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_another_shape_resizes(capture):
    agree({"resized": resized}, x(), capture=capture)

    def longer(x):
        out = torch.ones(5)
        torch.sum(x, 0, out=out)
        return out

    agree({"longer": longer}, x(), capture=capture)


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_a_view_that_would_be_resized_is_refused(capture):
    def run(x):
        out = torch.ones(5)
        part = out[:2]
        torch.sum(x, 0, out=out)
        return out, part

    refused(run, x(), capture=capture, match="another shape")


VIEWS = {
    "slice": lambda big: big[::2, 1:5],
    "select": lambda big: big.view(2, 3, 8)[1, :, :4],
    "transpose": lambda big: big[:4, :3].t(),
    "unbind": lambda big: torch.stack([big[:3], big[3:]]).unbind(0)[1][:, 4:],
    "diagonal rows": lambda big: big.view(3, 2, 8)[:, 0, :4],
}


@pytest.mark.parametrize("capture", CAPTURES)
def test_out_is_a_view(capture):
    def through(view):
        def run(x):
            big = torch.zeros(6, 8)
            before = big[2:4]
            torch.mul(x, 2, out=view(big))
            return big, before, big.sum(0)

        return run

    agree({name: through(view) for name, view in VIEWS.items()}, x(), capture=capture)


def two_outs(x):
    values, indices = torch.zeros(3), torch.zeros(3, dtype=torch.int64)
    returned = torch.max(x, 1, out=(values, indices))
    values += 1
    return values, indices, returned.values, returned[1]


def sorted_out(x):
    values, indices = torch.zeros(3, 4), torch.zeros(3, 4, dtype=torch.int64)
    torch.sort(x.sin(), 1, out=(values, indices))
    return values, indices


def topk_into_views(x):
    store = torch.zeros(2, 3, 2)
    places = torch.zeros(3, 2, dtype=torch.int64)
    torch.topk(x, 2, out=(store[1], places))
    return store, places


def min_out(x):
    values, indices = torch.empty(0), torch.empty(0, dtype=torch.int64)
    torch.min(x, 0, out=(values, indices))
    return values, indices


@pytest.mark.parametrize("capture", CAPTURES)
def test_two_outs(capture):
    functions = {f.__name__: f for f in (two_outs, sorted_out, topk_into_views, min_out)}
    agree(functions, x(), capture=capture)


def out_is_an_input(x):
    torch.add(x, 1, out=x)
    torch.neg(x[0].clone(), out=x[0])
    return x


def out_is_read_again(x):
    out = torch.zeros(3, 4)
    for i in range(3):
        torch.add(out, x * i, out=out)
    return out


@pytest.mark.parametrize("capture", CAPTURES)
def test_out_is_read_as_well(capture):
    agree({f.__name__: f for f in (out_is_an_input, out_is_read_again)}, x(), capture=capture)


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_dynamic_sizes(capture):
    def same(x):
        out = torch.zeros(x.shape[0], 4)
        row = out[0]
        torch.add(x, 1, out=out)
        return out, row

    def resized(x):
        out = torch.empty(0)
        torch.mul(x, 2, out=out)
        out[0] = 1
        return out

    functions = {"same": same, "resized": resized}
    larger = torch.arange(20.0).reshape(5, 4)
    agree(functions, x(), capture=capture, dynamic={0: [0]}, others=[(larger,)])
