"""Real architectures in plain PyTorch, with the published layer sizes and seeded weights."""

from functools import partial

from . import (
    alexnet,
    bert_base,
    dcgan,
    densenet121,
    inception_v3,
    resnet50,
    super_resolution,
    vgg16,
    vit_b_16,
    word_language_model,
)
from .example import Example, flat_tensors

MODELS: dict[str, Example] = {
    module.__name__.rpartition(".")[2]: Example(
        module.make, module.example_inputs, module.dynamic_batch
    )
    for module in (
        alexnet,
        vgg16,
        resnet50,
        densenet121,
        inception_v3,
        dcgan,
        super_resolution,
        vit_b_16,
        bert_base,
    )
} | {
    f"word_language_model_{rnn_type.lower()}": Example(
        partial(word_language_model.make, rnn_type),
        partial(word_language_model.example_inputs, rnn_type=rnn_type),
        partial(word_language_model.dynamic_batch, rnn_type),
    )
    for rnn_type in word_language_model.RNN_TYPES
}

__all__ = ["MODELS", "Example", "flat_tensors"]
