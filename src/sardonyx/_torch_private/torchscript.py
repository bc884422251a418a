"""TorchScript: its functions, graphs and operators."""

from __future__ import annotations

import re
from typing import Any

import torch


def is_scripted(function: Any) -> bool:
    """Whether it is TorchScript: Python knows nothing of its arguments, or what a wrapper says that
    parts of torch put around all of them."""
    return isinstance(function, (torch._C.ScriptMethod, torch._C.ScriptFunction))


def scripted_class(module: torch.nn.Module) -> str:
    """`torch.nn.modules.linear.Linear`: the class that a script module was made from."""
    name = str(module._c._type().qualified_name())  # type: ignore[operator,union-attr]
    parts = name.removeprefix("__torch__.").split(".")
    return ".".join(part for part in parts if not part.startswith("___torch_mangle_"))


def files_of_script(program: Any) -> set[str]:
    """The files of Python source that a script was compiled from."""
    files: set[str] = set()
    graph = program.inlined_graph  # which owns the nodes
    blocks = [graph]
    while blocks:
        for node in blocks.pop().nodes():
            files.update(_SOURCE_FILE.findall(node.sourceRange()))
            blocks += node.blocks()
    return files


_SOURCE_FILE = re.compile(r'File "([^"]+)", line \d+')


def has_hooks(module: Any = None) -> bool:
    """Whether hooks are registered for the calls of a module, or of all."""
    if module is not None:
        return bool(module._forward_hooks or module._forward_pre_hooks)
    every: Any = torch.nn.modules.module
    return bool(every._global_forward_hooks or every._global_forward_pre_hooks)


def inlined_subgraph(node: Any) -> Any:
    """The graph that prim::fork runs, its calls of functions replaced by what they do."""
    graph = node.g("Subgraph").copy()
    torch._C._jit_pass_inline(graph)
    return graph


def overload_of(node: Any) -> Any:
    """The operator overload that a TorchScript node calls; None for what is no operator."""
    text = node.schema()
    if not text.startswith(node.kind()):
        return None
    namespace, name = node.kind().split("::")
    head = text[len(node.kind()) :].split("(", 1)[0]
    packet = getattr(getattr(torch.ops, namespace), name)
    return getattr(packet, head.lstrip(".") or "default")


def is_known_to_dispatcher(op: Any) -> bool:
    """False for what TorchScript alone has: arithmetic of Python numbers, lists and strings."""
    return bool(torch._C._dispatch_has_kernel(op.name()))


def run_script_operator(name: str, *arguments: Any) -> Any:
    """What an operator that TorchScript alone has gives for Python values."""
    operator, _ = torch._C._jit_get_operation(name)
    return operator(*arguments)


def tuple_of_type(kind: Any, items: tuple[Any, ...]) -> tuple[Any, ...]:
    """The items as a tuple of a TorchScript type: for a NamedTuple, of the class that PyTorch
    returns from a scripted function. PyTorch shows the names of the fields in no other way."""
    graph: Any = torch._C.Graph()
    nothing = [graph.insertConstant(None) for _ in kind.elements()]
    node = graph.insertNode(graph.create("prim::TupleConstruct", nothing, 1))
    node.output().setType(kind)
    graph.registerOutput(node.output())
    made = torch._C._create_function_from_graph("tuple_of_type", graph)()
    return type(made)(*items) if hasattr(made, "_fields") else items


def is_script_method(function: Any) -> bool:
    """Whether it is a method of a scripted module, whose first argument is the module."""
    return isinstance(function, torch._C.ScriptMethod)


def python_of_script(script: Any) -> Any:
    """The Python function that a scripted one was made of; None where it is not known."""
    return getattr(script, "_torchdynamo_inline", None)


def has_nodes(script: Any, *kinds: str) -> bool:
    graph = script.inlined_graph
    return any(graph.findAllNodes(kind, recurse=True) for kind in kinds)
