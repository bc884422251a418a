"""`torch.onnx.ops` and `sardonyx.ops`: nodes of ONNX or of any other domain, that a model names
explicitly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx_ir as ir

from sardonyx.errors import SymbolicFunctionError
from sardonyx.extend.symbolic_functions.calls import bound_results, context_for
from sardonyx.extend.symbolic_functions.graph_context import GraphContext
from sardonyx.extend.symbolic_functions.operand_types import schema_at
from sardonyx.lower.complex.values import ComplexTensor
from sardonyx.lower.custom_lowerings import Call, CustomForm
from sardonyx.lower.onnx_types.legality import schema_of
from sardonyx.lower.registry import Refusal
from sardonyx.lower.values import Tensor

OWN_NAMESPACE = "sardonyx"
"""Of the operator behind `sardonyx.ops.symbolic`."""
_FIRST_OPSET = 23
"""Of RotaryEmbedding and Attention."""


def onnx_operator_forms(opset: int, domain_versions: dict[str, int]) -> dict[str, CustomForm]:
    """The forms of these calls; the versions of domains that they ask for are put down in
    `domain_versions`."""

    def symbolic(call: Call) -> list[Tensor | None]:
        g = context_for(call, opset)
        domain, version = call.arguments["domain"], call.arguments["version"]
        if domain in ("", "ai.onnx"):
            g = g.written_at(_written_at(call.arguments["op_type"], version, opset))
        elif version is not None and domain_versions.setdefault(domain, version) != version:
            raise Refusal(
                f"it is of version {version} of the domain {domain}, which has version"
                f" {domain_versions[domain]} elsewhere in this export"
            )
        return _results(g, call, _node_asked_for)

    def at_first_opset(write: Callable[[GraphContext, Call], Any]) -> CustomForm:
        def form(call: Call) -> list[Tensor | None]:
            return _results(
                context_for(call, opset).written_at(max(opset, _FIRST_OPSET)), call, write
            )

        return form

    return {
        "onnx_symbolic::_symbolic": symbolic,
        "onnx_symbolic::_symbolic_multi_out": symbolic,
        f"{OWN_NAMESPACE}::symbolic": symbolic,
        "onnx::RotaryEmbedding.opset23": at_first_opset(_rotary_embedding),
        "onnx::Attention.opset23": at_first_opset(_attention),
    }


def _written_at(name: str, version: int | None, opset: int) -> int:
    """The opset whose form of an operator of ONNX is meant, from which the export goes down."""
    if version is None or version == opset:
        return opset
    if version > opset:
        return version
    if _since(name, version) != _since(name, opset):
        raise Refusal(
            f"it is {name} as opset {version} has it, and at opset {opset}, the file's, it is"
            " another"
        )
    return opset


def _since(name: str, opset: int) -> int | None:
    schema = schema_of(name, opset)
    return None if schema is None else schema.since_version


def _results(
    g: GraphContext, call: Call, write: Callable[[GraphContext, Call], Any]
) -> list[Tensor | None]:
    try:
        return bound_results(g, call, write(g, call), advice="")
    except SymbolicFunctionError as error:
        # There is no function of the user's to blame: the call itself cannot be written.
        raise Refusal(str(error)) from error


def _node_asked_for(g: GraphContext, call: Call) -> Any:
    given = call.arguments
    domain, name = given["domain"], given["op_type"]
    results = g.op(
        f"{domain}::{name}" if domain else name,
        *_values(g, given["inputs"]),
        **_attributes(given, {} if domain else schema_at(name, g.opset).attributes),
        outputs=len(call.node.outputs),
    )
    first = results[0] if isinstance(results, tuple) else results
    keys, texts = given["metadata_props_keys"], given["metadata_props_values"]
    first.content.producer().metadata_props.update(zip(keys, texts, strict=True))
    return results


def _values(g: GraphContext, inputs: Sequence[Tensor | ComplexTensor | None]) -> list[Any]:
    values: list[Any] = []
    for tensor in inputs:
        if isinstance(tensor, ComplexTensor):
            raise Refusal("such a node is not given complex tensors")
        values.append(None if tensor is None else g.values.of_tensor(tensor))
    return values


def _attributes(given: dict[str, Any], known: Mapping[str, ir.AttributeType]) -> dict[str, Any]:
    """They come as the parts of three lists, with the letters of their types: `is` for ints. What
    is `known` to be a float may be written 1."""
    lists = {"i": given["attr_ints"], "f": given["attr_floats"], "s": given["attr_strs"]}
    attributes: dict[str, Any] = {}
    described = zip(given["attr_keys"], given["attr_types"], given["attr_pos"], strict=True)
    for name, kind, (start, end) in described:
        part = list(lists[kind[0]][start:end])
        letter = "f" if kind[0] == "i" and known.get(name) in _FLOATS else kind[0]
        attributes[f"{name}_{letter}"] = part if len(kind) == 2 else part[0]
    return attributes


_FLOATS = (ir.AttributeType.FLOAT, ir.AttributeType.FLOATS)


def _rotary_embedding(g: GraphContext, call: Call) -> Any:
    given = call.arguments
    tensors = [given[name] for name in ("x", "cos_cache", "sin_cache", "position_ids")]
    return g.op(
        "RotaryEmbedding",
        *_values(g, tensors),
        interleaved_i=int(given["interleaved"]),
        num_heads_i=given["num_heads"],
        rotary_embedding_dim_i=given["rotary_embedding_dim"],
    )


def _attention(g: GraphContext, call: Call) -> Any:
    """Where PyTorch's computation is the one that ONNX specifies."""
    given = call.arguments
    mode, softcap = given["qk_matmul_output_mode"], given["softcap"]
    if mode not in (0, 3):
        raise Refusal(f"what qk_matmul_output_mode={mode} gives differs in PyTorch and ONNX")
    if (given["past_key"] is None) != (given["past_value"] is None):
        raise Refusal("past_key and past_value come together in ONNX")
    if given["scale"] == 0:
        raise Refusal("scale=0 is none to ONNX Runtime, which then takes the default")
    if softcap and (given["attn_mask"] is not None or given["is_causal"]):
        raise Refusal("PyTorch caps the scores after the mask, ONNX before")
    if given["is_causal"] and given["past_key"] is not None:
        raise Refusal("with past keys, PyTorch and ONNX count is_causal from different places")
    names = ("Q", "K", "V", "attn_mask", "past_key", "past_value")
    options = {
        "is_causal_i": int(given["is_causal"]),
        "kv_num_heads_i": given["kv_num_heads"] or None,
        "q_num_heads_i": given["q_num_heads"] or None,
        "qk_matmul_output_mode_i": mode,
        "scale_f": given["scale"],
        "softcap_f": softcap,
        "softmax_precision_i": given["softmax_precision"],
    }
    return g.op(
        "Attention",
        *_values(g, [given[name] for name in names]),
        **{name: option for name, option in options.items() if option is not None},
        outputs=4,
    )
