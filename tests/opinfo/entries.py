"""PyTorch's own databases of operators, modules and higher-order operators, as one list."""

from __future__ import annotations

import random
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import islice
from typing import Any

import numpy as np
import torch

from tests.opinfo.ambiguous import COMPARED_BY

DTYPES = {
    name: getattr(torch, name)
    for name in (
        "float32",
        "int64",
        "bool",
        "float16",
        "bfloat16",
        "float64",
        "int32",
        "uint8",
        "int8",
        "complex64",
    )
}
CORE_DTYPES = ("float32", "int64", "bool")
"""Those of the comparison with torch.onnx."""
CAPTURES = ("export", "trace")
SAMPLES = 3
_LOOKED_AT = 60
"""Of how many samples of OpInfo those are picked."""


@dataclass(frozen=True)
class Call:
    """One call: what is called, and its arguments with tensors anywhere inside."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass(frozen=True)
class Entry:
    kind: str
    """op, module or hop"""
    name: str
    info: Any
    training: bool = False

    @cached_property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes that the operator takes, of those that are tried."""
        if self.kind == "module":
            taken = self.info.dtypes
        else:
            taken = self.info.supported_dtypes("cpu")
        return tuple(name for name, dtype in DTYPES.items() if dtype in taken)

    def calls(self, dtype: str, seed: int = 0) -> list[Call]:
        """Some of its samples, spread over what there is; the seed changes values alone."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _seed(seed)
            try:
                samples = list(islice(self._samples(DTYPES[dtype]), _LOOKED_AT))
            except Exception:
                return []  # PyTorch itself has none for this dtype
        samples = [s for s in samples if all(t.layout == torch.strided for t in _tensors(s))]
        if self.name in COMPARED_BY:
            samples = [replace(s, function=COMPARED_BY[self.name]) for s in samples]
        return [samples[i] for i in spread(len(samples), SAMPLES)]

    def _samples(self, dtype: torch.dtype) -> Iterator[Call]:
        if self.kind != "module":
            for sample in self.info.sample_inputs("cpu", dtype, requires_grad=False):
                yield Call(self.info.op, (sample.input, *sample.args), sample.kwargs)
            return
        given = self.info.module_inputs_func(
            self.info, device="cpu", dtype=dtype, requires_grad=False, training=self.training
        )
        for sample in given:
            if sample.forward_input is None:
                continue
            made = sample.constructor_input
            with torch.random.fork_rng():
                torch.manual_seed(1)
                module = self.info.module_cls(*made.args, **made.kwargs)
            module = module.to(dtype=dtype).train(self.training)
            yield Call(module, tuple(sample.forward_input.args), sample.forward_input.kwargs)


def spread(count: int, wanted: int) -> list[int]:
    """Indices over the whole range, its first and last among them."""
    if count <= wanted:
        return list(range(count))
    return [round(i * (count - 1) / (wanted - 1)) for i in range(wanted)]


@cache
def all_entries() -> dict[str, Entry]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
        from torch.testing._internal.common_modules import module_db
        from torch.testing._internal.hop_db import hop_db
    _let_random_operators_be_random()
    entries: list[Entry] = []
    for info in op_db:
        entries.append(Entry("op", _full_name(info), info))
    for info in hop_db:
        entries.append(Entry("hop", f"hop.{_full_name(info)}", info))
    for info in module_db:
        name = f"module.{info.name}"
        entries.append(Entry("module", name, info, training=False))
        if info.train_and_eval_differ:
            entries.append(Entry("module", f"{name}.train", info, training=True))
    named: dict[str, Entry] = {}
    for entry in entries:
        if entry.name in named:
            raise AssertionError(f"two entries are called {entry.name}")
        named[entry.name] = entry
    return named


def _let_random_operators_be_random() -> None:
    """OpInfo calls them with one seed, of which an exported model knows nothing."""
    for name, module in list(sys.modules.items()):
        if name.startswith("torch.testing._internal") and hasattr(module, "wrapper_set_seed"):
            module.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)


def _full_name(info: Any) -> str:
    variant = re.sub(r"\W+", "_", info.variant_test_name)
    return f"{info.name}.{variant}" if variant else str(info.name)


def _seed(seed: int) -> None:
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)


def _tensors(call: Call) -> Iterator[torch.Tensor]:
    for leaf in torch.utils._pytree.tree_leaves((call.args, call.kwargs)):
        if isinstance(leaf, torch.Tensor):
            yield leaf
