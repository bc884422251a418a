"""Programs that call torch.onnx.export: what each exports, with random weights and no downloads."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

Program = Callable[[Path], Path]
"""Exports in a folder, and returns the file."""

# -- ultralytics ---------------------------------------------------------------------------------


def yolo(config: str, **options: Any) -> Program:
    def program(folder: Path) -> Path:
        os.environ.update(
            YOLO_AUTOINSTALL="false", YOLO_OFFLINE="true", YOLO_CONFIG_DIR=str(folder)
        )
        from ultralytics import YOLO

        torch.manual_seed(0)
        model = YOLO(f"{config}.yaml")
        calibrate(model.model)
        return folder / model.export(format="onnx", imgsz=64, **options)

    return program


def calibrate(model: Any) -> None:
    """Untrained, its features fade from layer to layer until no score depends on the image: boxes
    tie, and a comparison shows nothing. Statistics of random images keep features at their scale;
    with a larger variance than theirs, images that differ from them are not amplified."""
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
    with torch.no_grad():
        for height, width in ((64, 64), (128, 64), (64, 128), (128, 128)):
            model.train()(torch.rand(8, 3, height, width))
        for norm in norms:
            norm.running_var *= 2
        head = model.model[-1]
        for branch in [*getattr(head, "cv3", ()), *(getattr(head, "one2one_cv3", None) or ())]:
            nn.init.normal_(branch[-1].weight, std=0.3)
            nn.init.zeros_(branch[-1].bias)
    model.eval()


# -- optimum, sentence-transformers, transformers ------------------------------------------------

SMALL = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "vocab_size": 128,
}


def tiny_transformer(kind: str, head: str) -> Any:
    import transformers

    torch.manual_seed(0)
    small: dict[str, Any] = dict(SMALL)
    if kind == "GPT2":
        small = {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 128}
    if kind == "T5":
        small = {"d_model": 32, "d_ff": 64, "d_kv": 8, "num_heads": 4, "num_layers": 2}
        small |= {"vocab_size": 128, "decoder_start_token_id": 0}
    if kind == "ViT":
        small |= {"image_size": 32, "patch_size": 8}
    if kind == "Whisper":
        small = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "vocab_size": 128}
        small |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4}
        small |= {"encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "pad_token_id": 0}
        small |= {"bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
    config = getattr(transformers, f"{kind}Config")(**small)
    return getattr(transformers, f"{kind}{head}")(config).eval()


def optimum(kind: str, head: str, task: str, file: str = "model.onnx") -> Program:
    def program(folder: Path) -> Path:
        from optimum.exporters.onnx import onnx_export_from_model

        model = tiny_transformer(kind, head)
        onnx_export_from_model(model, folder, task=task, do_validation=False)
        return folder / file

    return program


def sentence_transformers(folder: Path) -> Path:
    import sentence_transformers
    import tokenizers
    import transformers

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "model", "says", "hello"]
    vocabulary = {word: i for i, word in enumerate(words)}
    tokens = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokens.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    source = folder / "source"
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokens, **names).save_pretrained(source)
    tiny_transformer("Bert", "Model").save_pretrained(source)
    model = sentence_transformers.SentenceTransformer(
        str(source), backend="onnx", model_kwargs={"export": True}
    )
    model.encode(["the model says hello"])
    model.save_pretrained(str(folder / "saved"))
    return folder / "saved" / "onnx" / "model.onnx"


def transformers_exporter(kind: str, head: str, **options: Any) -> Program:
    def program(folder: Path) -> Path:
        from transformers.exporters.exporter_onnx import OnnxConfig, OnnxExporter

        model = tiny_transformer(kind, head)
        inputs: dict[str, Any] = {"input_ids": torch.randint(5, 100, (2, 6))}
        inputs["attention_mask"] = torch.ones(2, 6, dtype=torch.int64)
        if kind == "T5":
            inputs["decoder_input_ids"] = torch.randint(5, 100, (2, 4))
        if kind == "ViT":
            inputs = {"pixel_values": torch.rand(2, 3, 32, 32)}
        exported = OnnxExporter().export(model, inputs, config=OnnxConfig(**options))
        exported.save_pretrained(str(folder))
        return folder / "model.onnx"

    return program


# -- lightning, stable-baselines3, segmentation-models-pytorch, timm ------------------------------


def lightning(**options: Any) -> Program:
    def program(folder: Path) -> Path:
        import lightning

        class Autoencoder(lightning.LightningModule):
            def __init__(self) -> None:
                super().__init__()
                self.encoder = nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Dropout(0.5))
                self.decoder = nn.Linear(16, 64)
                self.example_input_array = torch.randn(4, 8, 8)

            def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
                code = self.encoder(x.view(x.size(0), -1))
                return {"code": code, "image": self.decoder(code).view_as(x)}

        Autoencoder().eval().to_onnx(folder / "model.onnx", **options)
        return folder / "model.onnx"

    return program


class Deterministic(nn.Module):
    """The wrapper of stable-baselines3's documentation."""

    def __init__(self, policy: nn.Module) -> None:
        super().__init__()
        self.policy = policy

    def forward(self, observation: torch.Tensor) -> Any:
        return self.policy(observation, deterministic=True)


def stable_baselines(algorithm: str) -> Program:
    def program(folder: Path) -> Path:
        import stable_baselines3

        environment = "CartPole-v1" if algorithm == "DQN" else "Pendulum-v1"
        agent = getattr(stable_baselines3, algorithm)("MlpPolicy", environment, device="cpu")
        policy: nn.Module = Deterministic(agent.policy)
        if algorithm == "SAC":
            actor = agent.policy.actor
            policy = nn.Sequential(actor.latent_pi, actor.mu, nn.Tanh())
        example = torch.randn(1, *agent.observation_space.shape)
        path = folder / "model.onnx"
        torch.onnx.export(policy, (example,), path, opset_version=17, input_names=["input"])
        return path

    return program


def segmentation(architecture: str, encoder: str = "resnet18") -> Program:
    def program(folder: Path) -> Path:
        import segmentation_models_pytorch as smp

        torch.manual_seed(0)
        model = smp.create_model(architecture, encoder_name=encoder, encoder_weights=None).eval()
        axes = {0: "batch_size", 2: "height", 3: "width"}
        path = folder / "model.onnx"
        torch.onnx.export(
            model,
            (torch.rand(2, 3, 64, 64),),
            path,
            export_params=True,
            opset_version=17,
            do_constant_folding=True,
            input_names=["input"],
            output_names=["output"],
            dynamic_axes={"input": axes, "output": axes},
        )
        return path

    return program


def timm(name: str, **options: Any) -> Program:
    def program(folder: Path) -> Path:
        import timm
        import timm.utils.onnx

        torch.manual_seed(0)
        model = timm.create_model(name, pretrained=False, exportable=True)
        path = folder / "model.onnx"
        example = torch.rand(2, *model.default_cfg["input_size"])
        timm.utils.onnx.onnx_export(model, str(path), example, check_forward=True, **options)
        return path

    return program


def yolo_programs() -> Iterator[tuple[str, Program]]:
    for task in ("", "-seg", "-pose", "-obb", "-cls"):
        config = f"yolo11n{task}"
        yield f"ultralytics {config}", yolo(config)
        yield f"ultralytics {config}, dynamic=True", yolo(config, dynamic=True)
        if task != "-cls":
            yield f"ultralytics {config}, nms=True", yolo(config, nms=True)
            dynamic = yolo(config, nms=True, dynamic=True)
            yield f"ultralytics {config}, nms=True, dynamic=True", dynamic
    yield "ultralytics yolo11n, quantize=16", yolo("yolo11n", quantize=16)
    yield "ultralytics yolo26n, dynamic=True", yolo("yolo26n", dynamic=True)
    yield "ultralytics yolo26n-seg", yolo("yolo26n-seg")


PROGRAMS: dict[str, Program] = {
    **dict(yolo_programs()),
    "optimum-onnx Bert, feature-extraction": optimum("Bert", "Model", "feature-extraction"),
    "optimum-onnx DistilBert, text-classification": optimum(
        "DistilBert", "ForSequenceClassification", "text-classification"
    ),
    "optimum-onnx GPT2, text-generation-with-past": optimum(
        "GPT2", "LMHeadModel", "text-generation-with-past"
    ),
    "optimum-onnx Llama, text-generation-with-past": optimum(
        "Llama", "ForCausalLM", "text-generation-with-past"
    ),
    "optimum-onnx T5, text2text-generation, encoder": optimum(
        "T5", "ForConditionalGeneration", "text2text-generation", "encoder_model.onnx"
    ),
    "optimum-onnx ViT, image-classification": optimum(
        "ViT", "ForImageClassification", "image-classification"
    ),
    "sentence-transformers, backend='onnx'": sentence_transformers,
    "transformers OnnxExporter, Bert": transformers_exporter("Bert", "Model", dynamic=True),
    "transformers OnnxExporter, Llama": transformers_exporter("Llama", "Model", dynamic=True),
    "transformers OnnxExporter, T5": transformers_exporter(
        "T5", "ForConditionalGeneration", dynamic=True
    ),
    "transformers OnnxExporter, ViT": transformers_exporter("ViT", "Model"),
    "lightning to_onnx": lightning(),
    "lightning to_onnx, dynamo=False": lightning(
        dynamo=False, input_names=["x"], dynamic_axes={"x": {0: "batch"}}
    ),
    "lightning to_onnx, dynamo=True": lightning(dynamo=True, dynamic_shapes=({0: "batch"},)),
    "stable-baselines3 PPO": stable_baselines("PPO"),
    "stable-baselines3 SAC": stable_baselines("SAC"),
    "stable-baselines3 DQN": stable_baselines("DQN"),
    **{
        f"segmentation-models-pytorch {name}": segmentation(name)
        for name in ("Unet", "UnetPlusPlus", "FPN", "PSPNet", "DeepLabV3Plus", "MAnet", "UPerNet")
    },
    "segmentation-models-pytorch Segformer": segmentation("Segformer", "mit_b0"),
    "timm onnx_export, resnet18": timm("resnet18", dynamic_size=True),
    "timm onnx_export, efficientnet": timm("test_efficientnet", dynamic_size=True),
    "timm onnx_export, vit, use_dynamo=True": timm("test_vit", use_dynamo=True),
    "timm onnx_export, keep_initializers=True": timm("test_convnext", keep_initializers=True),
}
"""By a name that says what is called."""
