"""The examples have the published layer sizes, and weights through which a signal passes."""

import gc

import pytest
import torch

from examples.models import MODELS, flat_tensors

PUBLISHED = {
    "alexnet": 61_100_840,
    "vgg16": 138_357_544,
    "resnet50": 25_557_032,
    "densenet121": 7_978_856,
    "inception_v3": 27_161_264,
    "dcgan": 3_576_704,
    "super_resolution": 59_657,
    "vit_b_16": 86_567_656,
    "bert_base": 109_482_240,
    "word_language_model_rnn_tanh": 13_505_278,
    "word_language_model_rnn_relu": 13_505_278,
    "word_language_model_lstm": 13_987_678,
    "word_language_model_gru": 13_826_878,
}


def test_every_example_has_a_published_count():
    assert PUBLISHED.keys() == MODELS.keys()


@pytest.mark.parametrize("name", MODELS)
def test_parameters_and_signal(name):
    example = MODELS[name]
    random_state = torch.get_rng_state()
    model = example.make()
    assert torch.equal(torch.get_rng_state(), random_state)
    assert not model.training
    assert sum(p.numel() for p in model.parameters()) == PUBLISHED[name]

    inputs = example.example_inputs()
    assert len(list(flat_tensors(inputs))) == len(example.input_names)
    with torch.no_grad():
        outputs = list(flat_tensors(model(*inputs)))
    for output in outputs:
        assert 1e-3 < output.std().item() < 1e3
    # Both examples of the batch matter: a model that ignores its input would compare equal to any.
    first, second = outputs[-1].unbind(1 if name.startswith("word") else 0)
    assert (first - second).std().item() > 1e-3 * outputs[-1].std().item()
    del model
    gc.collect()


def test_inception_gives_its_auxiliary_logits_in_training_only():
    example = MODELS["inception_v3"]
    model = example.make()
    with torch.no_grad():
        trained = model.train()(*example.example_inputs())
        evaluated = model.eval()(*example.example_inputs())
    assert trained.logits.shape == trained.aux_logits.shape == evaluated.shape == (2, 1000)
