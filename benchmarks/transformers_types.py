"""What the rule of tiny_transformers.py does not guess of single types: fields that belong
together, and the inputs that they need."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

Config = Any
Inputs = dict[str, torch.Tensor]
MakeInputs = Callable[[Config], Inputs]

VOCABULARY = 99
FIRST_PLAIN_TOKEN = 20
"""Tokens below have a role: padding, start, end, the place of an image."""
IMAGE_TOKEN = 19


@dataclass(frozen=True)
class TypeDetails:
    fields: dict[str, Any] = field(default_factory=dict)
    """Over those that the rule sets; None leaves a field at its default."""
    inputs: MakeInputs | None = None


def ids(length: int = 7, batch: int = 2, high: int = VOCABULARY) -> torch.Tensor:
    generator = torch.Generator().manual_seed(length)
    low = min(FIRST_PLAIN_TOKEN, high // 2)
    return torch.randint(low, high, (batch, length), generator=generator)


def reals(*shape: int) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(sum(shape)))


def ones(*shape: int) -> torch.Tensor:
    return torch.ones(shape, dtype=torch.int64)


def text(length: int = 7, **more: torch.Tensor) -> Inputs:
    return {"input_ids": ids(length), "attention_mask": ones(2, length), **more}


def images(side: int = 64, **more: torch.Tensor) -> MakeInputs:
    return lambda config: {"pixel_values": reals(2, 3, side, side), **more}


def given(**inputs: torch.Tensor) -> MakeInputs:
    return lambda config: inputs


def text_with_image(tokens: int, side: int = 32, **more: torch.Tensor) -> MakeInputs:
    """Each text begins with the places of an image."""
    sequence = torch.cat([torch.full((2, tokens), IMAGE_TOKEN), ids(5)], dim=1)
    return given(
        pixel_values=reals(2, 3, side, side),
        input_ids=sequence,
        attention_mask=torch.ones_like(sequence),
        **more,
    )


def patches_of_images(name: str = "hidden_states") -> MakeInputs:
    """Two images of 4 x 4 and 4 x 8 patches, one after another, as recent vision towers take."""

    def inputs(config: Config) -> Inputs:
        channels = getattr(config, "in_channels", None) or getattr(config, "num_channels", 3)
        frames = getattr(config, "temporal_patch_size", 1)
        grid = torch.tensor([[1, 4, 4], [1, 4, 8]])
        return {
            name: reals(48, channels * frames * config.patch_size**2),
            "grid_thw": grid,
        }

    return inputs


STAGES = ["stage1", "stage2", "stage3", "stage4"]
RESNET = {
    "model_type": "resnet",
    "embedding_size": 8,
    "hidden_sizes": [8, 16, 24, 32],
    "depths": [1, 1, 1, 1],
    "out_features": ["stage4"],
}
SWIN = {
    "model_type": "swin",
    "image_size": 64,
    "patch_size": 4,
    "embed_dim": 8,
    "depths": [1, 1, 1, 1],
    "num_heads": [2, 2, 2, 2],
    "window_size": 4,
    "out_features": STAGES,
}
HGNET = {
    "model_type": "hgnet_v2",
    "stem_channels": [3, 16, 16],
    "stage_in_channels": [16, 16, 32, 48],
    "stage_mid_channels": [8, 8, 8, 8],
    "stage_out_channels": [16, 32, 48, 64],
    "stage_num_blocks": [1, 1, 1, 1],
    "stage_numb_of_layers": [2, 2, 2, 2],
    "hidden_sizes": [16, 32, 48, 64],
    "depths": [1, 1, 1, 1],
    "out_features": ["stage2", "stage3", "stage4"],
}
PYRAMID = {"encoder_in_channels": [32, 48, 64], "decoder_in_channels": [32, 32, 32]}
RT_DETR = TypeDetails(
    {
        **PYRAMID,
        "backbone_config": {
            "model_type": "rt_detr_resnet",
            "embedding_size": 8,
            "hidden_sizes": [16, 32, 48, 64],
            "depths": [1, 1, 1, 1],
            "out_features": ["stage2", "stage3", "stage4"],
        },
    },
    images(),
)
HGNET_DETR = TypeDetails({**PYRAMID, "backbone_config": HGNET}, images())
DETR = TypeDetails({"backbone_config": RESNET}, images())
GROUNDING = TypeDetails(
    {"backbone_config": {**SWIN, "out_features": STAGES[1:]}, "max_text_len": 16, "num_queries": 8},
    lambda config: {**images()(config), **text(token_type_ids=torch.zeros_like(ids()))},
)
SEGMENTATION = {"backbone_config": SWIN, "decoder_layers": 3}
HIERA = {
    "model_type": "sam2_hiera_det_model",
    "hidden_size": 12,
    "image_size": [128, 128],
    "embed_dim_per_stage": [12, 24, 48, 96],
    "blocks_per_stage": [1, 1, 2, 1],
    "global_attention_blocks": [3],
    "num_attention_heads": 1,
}
POINTS = {"input_points": 100 * reals(2, 1, 2, 2), "input_labels": ones(2, 1, 2)}
PROMPTS = {"prompt_encoder_config": {"image_size": 128, "patch_size": 16}}
SMALL_MAPS = [[32, 32], [16, 16], [8, 8]]
SAM2_VISION = {
    "backbone_config": HIERA,
    "backbone_channel_list": [96, 48, 24, 12],
    "backbone_feature_sizes": SMALL_MAPS,
}
MAMBA = {"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 8, "mamba_chunk_size": 4}
HYBRID = {"num_hidden_layers": 2, "layer_types": ["linear_attention", "full_attention"]}
SERIES = TypeDetails(
    {"prediction_length": 4, "context_length": 8, "num_time_features": 1, "lags_sequence": [1, 2]},
    given(
        past_values=reals(2, 10),
        past_time_features=reals(2, 10, 1),
        past_observed_mask=torch.ones(2, 10),
        future_values=reals(2, 4),
        future_time_features=reals(2, 4, 1),
    ),
)
MULTI_LATENT = {"qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "num_key_value_heads": 4}
VISION_TOWER = TypeDetails({}, patches_of_images())
PACKED_VISION_TOWER = TypeDetails({}, patches_of_images("pixel_values"))

TYPES: dict[str, TypeDetails] = {
    # Detectors and segmentation
    **dict.fromkeys(["detr", "conditional_detr", "dab-detr", "table-transformer"], DETR),
    "deformable_detr": TypeDetails(
        {"backbone_config": {**RESNET, "out_features": STAGES[1:]}}, images()
    ),
    **dict.fromkeys(["rt_detr", "rt_detr_v2"], RT_DETR),
    **dict.fromkeys(["d_fine", "deimv2"], HGNET_DETR),
    **dict.fromkeys(["pp_doclayout_v3", "pp_doclayout_v4"], HGNET_DETR),
    "lw_detr": TypeDetails(
        {
            "backbone_config": {
                "model_type": "lw_detr_vit",
                "hidden_size": 32,
                "num_hidden_layers": 3,
                "num_attention_heads": 2,
                "image_size": 64,
                "pretrain_image_size": 64,
                "patch_size": 4,
                "window_block_indices": [0, 2],
                "out_indices": [2, 3],
            },
            "projector_scale_factors": [2.0, 0.5],
            "decoder_self_attention_heads": 4,
            "decoder_cross_attention_heads": 4,
        },
        images(),
    ),
    **dict.fromkeys(["grounding-dino", "mm-grounding-dino"], GROUNDING),
    "omdet-turbo": TypeDetails(
        {
            "backbone_config": {**SWIN, "out_features": STAGES[1:]},
            "text_config": {"model_type": "clip_text_model", "projection_dim": 32},
            "encoder_in_channels": [16, 32, 64],
            "vision_features_channels": [32, 32, 32],
            "text_projection_in_dim": 32,
            "text_projection_out_dim": 32,
            "class_embed_dim": 32,
            "encoder_hidden_dim": 32,
            "decoder_hidden_dim": 32,
            "decoder_num_heads": 4,
            "decoder_num_layers": 2,
        },
        images(
            classes_input_ids=ids(5, batch=5),
            classes_attention_mask=ones(5, 5),
            tasks_input_ids=ids(6),
            tasks_attention_mask=ones(2, 6),
            classes_structure=torch.tensor([2, 3]),
        ),
    ),
    "mask2former": TypeDetails(
        {**SEGMENTATION, "feature_size": 32, "mask_feature_size": 32}, images()
    ),
    "oneformer": TypeDetails(
        {**SEGMENTATION, "conv_dim": 32, "mask_dim": 32, "text_encoder_width": 32},
        images(task_inputs=ids(77)),
    ),
    # Segment anything
    "sam2": TypeDetails({"vision_config": SAM2_VISION, **PROMPTS}, images(128, **POINTS)),
    "edgetam": TypeDetails(
        {
            "vision_config": {
                "backbone_config": {
                    "model_type": "timm_wrapper",
                    "architecture": "repvit_m1",
                    "model_args": {
                        "in_chans": 3,
                        "features_only": True,
                        "out_indices": [0, 1, 2, 3],
                    },
                },
                "backbone_feature_sizes": SMALL_MAPS,
            },
            **PROMPTS,
        },
        images(128, **POINTS),
    ),
    "sam2_hiera_det_model": TypeDetails(
        {k: v for k, v in HIERA.items() if k != "model_type"}, images(128)
    ),
    # Images and text
    "siglip2": TypeDetails(
        {"vision_config": {"num_patches": 16}},
        given(
            **text(),
            pixel_values=reals(2, 16, 192),
            pixel_attention_mask=ones(2, 16),
            spatial_shapes=torch.tensor([[4, 4], [2, 8]]),
        ),
    ),
    "siglip2_vision_model": TypeDetails(
        {"num_patches": 16},
        given(
            pixel_values=reals(2, 16, 192),
            pixel_attention_mask=ones(2, 16),
            spatial_shapes=torch.tensor([[4, 4], [2, 8]]),
        ),
    ),
    "blip-2": TypeDetails(
        {"num_query_tokens": 4, "image_token_index": IMAGE_TOKEN}, text_with_image(4)
    ),
    "instructblip": TypeDetails(
        {"num_query_tokens": 4, "image_token_index": IMAGE_TOKEN},
        text_with_image(4, qformer_input_ids=ids(6), qformer_attention_mask=ones(2, 6)),
    ),
    "paligemma": TypeDetails({"image_token_index": IMAGE_TOKEN}, text_with_image(16)),
    "idefics": TypeDetails(
        {},
        given(**text(), pixel_values=reals(2, 1, 3, 32, 32), image_attention_mask=ones(2, 7, 1)),
    ),
    "kosmos-2": TypeDetails(
        {"latent_query_num": 4, "text_config": {"layers": 2}},
        given(
            **text(12),
            pixel_values=reals(2, 3, 32, 32),
            image_embeds_position_mask=torch.arange(12).lt(4).long().expand(2, 12).contiguous(),
        ),
    ),
    "udop": TypeDetails(
        {"max_2d_position_embeddings": 64},
        given(
            **text(),
            bbox=reals(2, 7, 4),
            decoder_input_ids=ids(5),
            pixel_values=reals(2, 3, 32, 32),
        ),
    ),
    "tvp": TypeDetails(
        {
            "backbone_config": RESNET,
            "max_img_size": 64,
            "visual_prompt_size": 8,
            "num_frames": 2,
        },
        given(**text(), pixel_values=reals(2, 2, 3, 64, 64)),
    ),
    "lxmert": TypeDetails(
        {"l_layers": 2, "x_layers": 2, "r_layers": 2, "visual_feat_dim": 16, "num_qa_labels": 9},
        given(**text(), visual_feats=reals(2, 5, 16), visual_pos=reals(2, 5, 4)),
    ),
    "bros": TypeDetails(
        {
            "dim_bbox_sinusoid_emb_2d": 32,
            "dim_bbox_sinusoid_emb_1d": 4,
            "dim_bbox_projection": 8,
        },
        given(**text(), bbox=reals(2, 7, 8)),
    ),
    **dict.fromkeys(
        [
            *("qwen2_5_vl_vision", "qwen3_vl_vision", "qwen3_vl_moe_vision", "qwen3_5_vision"),
            *("qwen3_5_moe_vision", "qwen4_exp_vision", "glm4v_vision", "glm4v_moe_vision"),
            *("glm_ocr_vision", "glm5_next_vision", "exaone4_5_vision", "cohere_compass_vision"),
        ],
        VISION_TOWER,
    ),
    **dict.fromkeys(
        [
            *("hunyuan_vl_vision", "cosmos3_edge_vision", "glm_image_vision", "kimi_k25_vision"),
            *("lfm3_vl_vision", "muse_glimmer_vision", "muse_spark_vision"),
        ],
        PACKED_VISION_TOWER,
    ),
    # Text
    "gpt_neo": TypeDetails({"attention_types": [[["global", "local"], 1]], "window_size": 4}),
    "luke": TypeDetails(
        {"entity_vocab_size": 99, "entity_emb_size": 16},
        given(
            **text(),
            entity_ids=ids(3),
            entity_attention_mask=ones(2, 3),
            entity_position_ids=torch.tensor([[[1, 2], [3, -1], [4, 5]]] * 2),
        ),
    ),
    "perceiver": TypeDetails(
        {"d_latents": 32, "num_latents": 8, "num_self_attends_per_block": 2},
        given(inputs=reals(2, 12, 32), attention_mask=ones(2, 12)),
    ),
    "esm": TypeDetails({"vocab_size": VOCABULARY, "mask_token_id": 4, "pad_token_id": 1}),
    "esmc": TypeDetails({"vocab_size": VOCABULARY}),
    "xmod": TypeDetails({"default_language": "en_XX"}),
    "nemotron": TypeDetails({"num_key_value_heads": 2}),
    "ministral": TypeDetails({"head_dim": 8}),
    **dict.fromkeys(
        ["hunyuan_v1_dense", "hunyuan_v1_moe", "hunyuan_vl_text"], TypeDetails({"head_dim": 8})
    ),
    "dbrx": TypeDetails({"attn_config": {"rope_theta": 1e4}}),
    "dots1": TypeDetails({"n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2}),
    "deepseek_v2": TypeDetails({**MULTI_LATENT, "num_experts_per_tok": 2, "head_dim": 8}),
    "axk1": TypeDetails({**MULTI_LATENT, "topk_group": 1, "n_group": 2}),
    "mistral4": TypeDetails({**MULTI_LATENT, "head_dim": 8, "qk_head_dim": 16}),
    "mamba2": TypeDetails(
        {"num_heads": 8, "head_dim": 8, "state_size": 8, "chunk_size": 4, "n_groups": 2}
    ),
    "bamba": TypeDetails({**MAMBA, "attn_layer_indices": [1]}),
    "granitemoehybrid": TypeDetails({**MAMBA, **HYBRID}),
    "zamba": TypeDetails(
        {
            "num_hidden_layers": 3,
            "layers_block_type": ["linear_attention", "hybrid", "linear_attention"],
            "attention_hidden_size": 64,
            "attention_head_dim": 16,
            "mamba_dt_rank": 4,
            "num_key_value_heads": 4,
        }
    ),
    "zamba2": TypeDetails(
        {
            "num_hidden_layers": 3,
            "layers_block_type": ["linear_attention", "hybrid", "linear_attention"],
            "n_mamba_heads": 8,
            "mamba_d_state": 8,
            "mamba_ngroups": 1,
            "chunk_size": 4,
            "num_key_value_heads": 4,
            "attention_hidden_size": 64,
            "attention_head_dim": 16,
            "mamba_headdim": 8,
            "adapter_rank": 4,
        }
    ),
    "kimi_linear": TypeDetails({**MULTI_LATENT, **HYBRID, "linear_num_heads": 4}),
    "bailing_hybrid": TypeDetails({**HYBRID}),
    "lfm2_moe": TypeDetails(
        {"num_hidden_layers": 4, "layer_types": ["conv", "conv", "full_attention", "conv"]}
    ),
    "gemma3n_text": TypeDetails(
        {
            "num_hidden_layers": 4,
            "layer_types": ["sliding_attention", "full_attention"] * 2,
            "num_kv_shared_layers": 2,
            "intermediate_size": [48] * 4,
            "activation_sparsity_pattern": [0.5, 0.0, 0.0, 0.0],
            "vocab_size_per_layer_input": VOCABULARY,
            "hidden_size_per_layer_input": 8,
            "laurel_rank": 8,
        }
    ),
    "gemma4_text": TypeDetails(
        {"vocab_size_per_layer_input": VOCABULARY, "hidden_size_per_layer_input": 8}
    ),
    "gemma4_vision": TypeDetails(
        {"position_embedding_size": 16, "pooling_kernel_size": 2},
        given(
            pixel_values=reals(2, 16, 192),
            pixel_position_ids=torch.cartesian_prod(torch.arange(4), torch.arange(4)).repeat(
                2, 1, 1
            ),
        ),
    ),
    "gemma4_audio": TypeDetails(
        {"subsampling_conv_channels": [16, 8]}, given(input_features=reals(2, 64, 128))
    ),
    # Sound
    "audio-spectrogram-transformer": TypeDetails(
        {"max_length": 64, "num_mel_bins": 32}, given(input_values=reals(2, 64, 32))
    ),
    "clap": TypeDetails(
        {
            "audio_config": {
                "spec_size": 64,
                "num_mel_bins": 16,
                "depths": [1, 1],
                "num_attention_heads": [2, 2],
                "hidden_size": 32,
                "patch_embeds_hidden_size": 16,
                "window_size": 4,
                "patch_size": 4,
                "num_hidden_layers": 2,
            }
        },
        given(
            **text(),
            input_features=reals(2, 1, 64, 16),
            is_longer=torch.zeros(2, 1, dtype=torch.bool),
        ),
    ),
    "wav2vec2-bert": TypeDetails(
        {}, given(input_features=reals(2, 24, 160), attention_mask=ones(2, 24))
    ),
    "speecht5": TypeDetails(
        {}, given(input_values=reals(2, 9, 32), decoder_input_values=reals(2, 6, 32))
    ),
    "vits": TypeDetails({}, lambda config: text(input_ids=ids(high=38))),
    **dict.fromkeys(
        ["fastspeech2_conformer", "fastspeech2_conformer_with_hifigan"],
        TypeDetails({}, lambda config: text(input_ids=ids(high=78))),
    ),
    "qwen3_asr_encoder": TypeDetails(
        {}, given(input_features=reals(2, 128, 100), input_features_mask=ones(2, 100))
    ),
    "fun_asr_nano_encoder": TypeDetails(
        {}, given(input_features=reals(2, 24, 560), input_features_mask=ones(2, 24))
    ),
    "audioflamingo3_encoder": TypeDetails(
        {}, given(input_features=reals(2, 128, 64), input_features_mask=ones(2, 64))
    ),
    # Series
    **dict.fromkeys(["time_series_transformer", "informer", "autoformer"], SERIES),
    "patchtst": TypeDetails({}, given(past_values=reals(2, 32, 1))),
    "patchtsmixer": TypeDetails({}, given(past_values=reals(2, 32, 1))),
    "timesfm": TypeDetails(
        {},
        given(
            past_values=reals(2, 64),
            past_values_padding=torch.zeros(2, 64, dtype=torch.int64),
            freq=torch.zeros(2, 1, dtype=torch.int64),
        ),
    ),
    "decision_transformer": TypeDetails(
        {},
        given(
            states=reals(2, 5, 17),
            actions=reals(2, 5, 4),
            rewards=reals(2, 5, 1),
            returns_to_go=reals(2, 5, 1),
            timesteps=torch.arange(5).repeat(2, 1),
            attention_mask=ones(2, 5),
        ),
    ),
    # Pairs of images
    "efficientloftr": TypeDetails({}, given(pixel_values=reals(2, 2, 3, 64, 64))),
    "lightglue": TypeDetails({}, given(pixel_values=reals(2, 2, 3, 64, 64))),
    "seggpt": TypeDetails(
        {
            "image_size": [64, 32],
            "patch_size": 8,
            "num_hidden_layers": 4,
            "merge_index": 1,
            "intermediate_hidden_state_indices": [0, 1, 2, 3],
        },
        given(
            pixel_values=reals(2, 3, 32, 32),
            prompt_pixel_values=reals(2, 3, 32, 32),
            prompt_masks=reals(2, 3, 32, 32),
        ),
    ),
}
