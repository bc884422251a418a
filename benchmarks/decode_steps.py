"""Decode steps of language models: some tokens and a cache, from a first run over three tokens."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from benchmarks import tiny_transformers
from sardonyx.aten import pytree

BATCH, PAST, STEP = 2, 3, 2
MODEL_TYPES = (
    *("llama", "gpt2", "gemma", "mistral", "qwen3", "qwen3_moe", "bloom", "opt"),
    *("mamba", "falcon_mamba", "t5", "bart", "whisper"),
)
"""Caches of keys and values, of convolutions and states, and of an encoder beside a decoder."""
IDS = {0: "batch", 1: "sequence"}


def decode_steps(model_type: str) -> Iterator[tuple[nn.Module, dict[str, Any], dict[str, Any]]]:
    """A model, the example of a step, and its dynamic dims."""
    for model, prompt in tiny_transformers.tiny_models(model_type):
        prompt = {name: tensor[:BATCH] for name, tensor in prompt.items()}
        main = "decoder_input_ids" if model.config.is_encoder_decoder else "input_ids"
        prompt[main] = prompt[main][:, :PAST]
        if main == "input_ids" and "attention_mask" in prompt:
            prompt["attention_mask"] = prompt["attention_mask"][:, :PAST]
        with torch.no_grad():
            first = model(**prompt, use_cache=True)
        name = "cache_params" if "cache_params" in first else "past_key_values"
        cache = first[name]
        step: dict[str, Any] = {main: torch.full((BATCH, STEP), 50), name: cache}
        dims: dict[str, Any] = {main: IDS, name: cache_dims(cache)}
        if model.config.is_encoder_decoder:
            step["encoder_outputs"] = (first.encoder_last_hidden_state,)
            dims["encoder_outputs"] = ({0: "batch", 1: "source"},)
        elif name == "past_key_values":
            step["attention_mask"] = torch.ones(BATCH, PAST + STEP, dtype=torch.int64)
            dims["attention_mask"] = {0: "batch", 1: "past + sequence"}
        yield model, {**step, "use_cache": True}, {**dims, "use_cache": None}


def cache_dims(cache: Any) -> dict[str, Any]:
    """Of keys and values the batch and the tokens, of states the batch."""
    dims: dict[str, Any] = {}
    leaves, structure = pytree.flatten(cache)
    for path, leaf in zip(pytree.paths(structure), leaves, strict=True):
        holder = dims
        for key in path[:-1]:
            holder = holder.setdefault(key, {})
        length = "source" if "cross_attention_cache" in path else "past"
        if not isinstance(leaf, torch.Tensor) or not leaf.dim():
            holder[path[-1]] = None
        elif path[-1] in ("key", "value"):
            holder[path[-1]] = {0: "batch", 2: length}
        else:
            holder[path[-1]] = {0: "batch"}
    return dims
