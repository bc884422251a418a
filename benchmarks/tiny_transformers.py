"""Every model type of transformers, made tiny: its default configuration with small sizes."""

import inspect
import itertools
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from benchmarks.transformers_types import (
    FIRST_PLAIN_TOKEN,
    TYPES,
    VOCABULARY,
    Config,
    Inputs,
    TypeDetails,
)

MOST_PARAMETERS = 100_000_000

COUNTS = {
    **dict.fromkeys(
        [
            *("num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers"),
            *("decoder_layers", "num_decoder_layers", "num_encoder_layers", "depth"),
            *("encoder_num_hidden_layers", "decoder_num_hidden_layers"),
        ],
        2,
    ),
    "vocab_size": VOCABULARY,
}
WIDTHS = {
    **dict.fromkeys(
        [
            *("hidden_size", "d_model", "embed_dim", "n_embd", "dim", "hidden_dim", "emb_dim"),
            *("embedding_size", "projection_dim", "decoder_hidden_size", "encoder_hidden_dim"),
            *("encoder_hidden_size", "out_hidden_size", "word_embed_proj_dim", "output_channels"),
            *("fpn_hidden_size", "text_hidden_size", "output_hidden_size", "attention_hidden_size"),
            *("max_source_positions", "output_dim", "pooler_hidden_size", "linear_head_dim"),
        ],
        32,
    ),
    **dict.fromkeys(
        [
            *("intermediate_size", "encoder_ffn_dim", "decoder_ffn_dim", "ffn_dim", "d_ff"),
            *("moe_intermediate_size", "mlp_dim", "shared_expert_intermediate_size", "d_inner"),
            *("ffn_hidden_size", "decoder_intermediate_size", "shared_intermediate_size"),
        ],
        48,
    ),
    **dict.fromkeys(
        [
            *("num_attention_heads", "num_heads", "n_head", "n_heads", "encoder_attention_heads"),
            *("decoder_attention_heads", "attention_heads", "decoder_num_attention_heads"),
            *("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"),
            *("linear_num_key_heads", "linear_num_value_heads", "index_n_heads"),
        ],
        4,
    ),
    **dict.fromkeys(
        ["num_key_value_heads", "num_experts_per_tok", "moe_k", "n_group", "num_experts_per_token"],
        2,
    ),
    **dict.fromkeys(
        [
            *("head_dim", "d_kv", "d_head", "v_head_dim", "qk_nope_head_dim", "qk_rope_head_dim"),
            *("kv_lora_rank", "q_lora_rank", "linear_key_head_dim", "linear_value_head_dim"),
            *("patch_size", "num_queries", "index_head_dim", "rotary_dim", "swa_head_dim"),
        ],
        8,
    ),
    "qk_head_dim": 16,
    "image_size": 32,
    "sliding_window": 16,
    "max_position_embeddings": 64,
    "n_positions": 64,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
}
LISTS = {
    "hidden_sizes": [16, 32, 48, 64],
    "depths": [1, 1, 1, 1],
    "conv_dim": [32, 32, 32, 32, 32, 32, 32],
}
SIZES = [
    {**COUNTS, **WIDTHS},
    {**COUNTS, **WIDTHS, "num_key_value_heads": 4},
    {**COUNTS, **WIDTHS, "num_hidden_layers": 8, "n_layer": 8},
    {**COUNTS, **WIDTHS, "hidden_size": 256, "head_dim": 64},
    {**COUNTS, **WIDTHS, "hidden_size": 512, "head_dim": 128},
    {**COUNTS, "image_size": 32},
    COUNTS,
]
"""What is made small, the first that runs: most; with as many heads of keys as of queries; with
layers of each kind that a model mixes; with larger heads; layers alone, where widths belong
together."""


def model_types() -> list[str]:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

    return [name for name in CONFIG_MAPPING_NAMES if name in MODEL_MAPPING_NAMES]


def tiny_models(model_type: str) -> Iterator[tuple[nn.Module, Inputs]]:
    """Models of a type and inputs for them, to be tried in turn; ends with an error if none can
    be built."""
    from transformers import AutoModel
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    config_class = CONFIG_MAPPING[model_type]
    details = TYPES.get(model_type, TypeDetails())
    error: Exception = RuntimeError("no inputs are known for it")
    for sizes in SIZES:
        try:
            fields = small_fields(config_class(), sizes)
            config = config_class(**merged(fields, details.fields))
            with torch.device("meta"):
                abstract = AutoModel.from_config(config)
            count = sum(parameter.numel() for parameter in abstract.parameters())
            if count > MOST_PARAMETERS:
                raise ValueError(f"the smallest model that is made has {count:,} parameters")
            torch.manual_seed(0)
            model = AutoModel.from_config(config).eval()
        except Exception as problem:
            error = problem
            continue
        for inputs in [details.inputs(config)] if details.inputs else possible_inputs(model):
            yield model, inputs
    raise error


def merged(fields: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """A configuration that names another model type replaces the one in its place."""
    result = dict(fields)
    for name, value in over.items():
        old = result.get(name)
        if value is None:
            result.pop(name, None)
        elif (
            isinstance(value, dict)
            and isinstance(old, dict)
            and value.get("model_type") in (None, old.get("model_type"))
        ):
            result[name] = merged(old, value)
        else:
            result[name] = value
    return result


def small_fields(config: Config, sizes: dict[str, int]) -> dict[str, Any]:
    """The fields of a configuration that are set, those of the configurations in it too."""
    fields: dict[str, Any] = {}
    special = itertools.count()
    for name, value in vars(config).items():
        if name.startswith("_") or isinstance(value, bool):
            continue
        if hasattr(value, "to_dict"):
            fields[name] = small_fields(value, sizes)
            if getattr(value, "model_type", ""):
                fields[name]["model_type"] = value.model_type
        elif name.endswith(("_token_id", "_token_index")) and isinstance(value, int):
            fields[name] = next(special) % FIRST_PLAIN_TOKEN
        elif isinstance(value, int) and name in sizes and value > sizes[name]:
            fields[name] = sizes[name]
        elif isinstance(value, list | tuple) and "hidden_size" in sizes and name in LISTS:
            fields[name] = LISTS[name][: len(value)]
        elif isinstance(value, dict) and "mrope_section" in value and "head_dim" in sizes:
            half = int(sizes["head_dim"] * value.get("partial_rotary_factor", 1)) // 2
            fields[name] = {**value, "mrope_section": [half - 1, 1, 0]}
    return fields


def configurations(config: Config) -> Iterator[Config]:
    yield config
    for value in vars(config).values():
        if hasattr(value, "to_dict"):
            yield from configurations(value)


def field(config: Config, name: str, default: Any) -> Any:
    """The first configuration's that has it, this one or one in it."""
    values = (getattr(part, name, None) for part in configurations(config))
    return next((value for value in values if value is not None), default)


def possible_inputs(model: nn.Module) -> Iterator[Inputs]:
    """From every modality at once to the main input alone, in each layout that models have."""
    parameters = inspect.signature(model.forward).parameters
    main = getattr(model, "main_input_name", "input_ids")
    main = main if isinstance(main, str) else main[0]
    known = known_inputs(model.config)
    required = {
        name
        for name, parameter in parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    }
    text = {"input_ids", "attention_mask", "decoder_input_ids"}
    seen = []
    for names in (
        set(known),
        text | {main} | required,
        {main, "decoder_input_ids"} | required,
        {main},
    ):
        names = [name for name in parameters if name in names and name in known]
        if "input_ids" not in names and "attention_mask" not in required:
            names = [name for name in names if name != "attention_mask"]  # it is the text's
        if not names or names in seen:
            continue
        seen.append(names)
        for tensors in itertools.product(*(known[name] for name in names)):
            yield dict(zip(names, tensors, strict=True))


def known_inputs(config: Config) -> dict[str, list[torch.Tensor]]:
    """Each input's tensors by name, one per layout."""
    generator = torch.Generator().manual_seed(0)

    def ids(length: int) -> torch.Tensor:
        return torch.randint(FIRST_PLAIN_TOKEN, VOCABULARY, (2, length), generator=generator)

    def reals(*shape: int) -> torch.Tensor:
        return torch.rand(shape, generator=generator)

    size = field(config, "image_size", 32)
    height, width = size if isinstance(size, list | tuple) else (size, size)
    if not isinstance(height, int) or not isinstance(width, int):
        height = width = 32
    channels = field(config, "num_channels", 3)
    channels = channels if isinstance(channels, int) else 3
    frames = field(config, "num_frames", 4)
    mels = field(config, "num_mel_bins", 80)
    images = [reals(2, channels, height, width)]
    if max(height, width) < 64:
        images.append(reals(2, channels, 64, 64))
    return {
        "input_ids": [ids(7)],
        "attention_mask": [torch.ones(2, 7, dtype=torch.int64)],
        "decoder_input_ids": [ids(5)],
        "pixel_values": [*images, reals(2, frames, channels, height, width)],
        "pixel_values_videos": [reals(2, frames, channels, height, width)],
        "input_values": [reals(2, 2000), reals(2, 1, 2000), reals(2, 64, mels)],
        "input_features": [reals(2, mels, 64), reals(2, 64, mels)],
    }
