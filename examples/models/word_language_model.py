"""The recurrent word language model of pytorch/examples: embedding, RNN, decoder, log-softmax."""

import torch
from torch import nn
from torch.nn import functional as F

from .initialize import seeded

RNN_TYPES = ("RNN_TANH", "RNN_RELU", "LSTM", "GRU")
WIKITEXT_2_WORDS = 33278
SEQUENCE_LENGTH = 35
HIDDEN = 200
LAYERS = 2

Hidden = torch.Tensor | tuple[torch.Tensor, torch.Tensor]


def make_rnn(rnn_type: str, inputs: int, hidden: int, layers: int, dropout: float) -> nn.RNNBase:
    if rnn_type == "LSTM":
        return nn.LSTM(inputs, hidden, layers, dropout=dropout)
    if rnn_type == "GRU":
        return nn.GRU(inputs, hidden, layers, dropout=dropout)
    nonlinearity = {"RNN_TANH": "tanh", "RNN_RELU": "relu"}[rnn_type]
    return nn.RNN(inputs, hidden, layers, nonlinearity=nonlinearity, dropout=dropout)


class RNNModel(nn.Module):
    def __init__(
        self,
        rnn_type: str,
        words: int = WIKITEXT_2_WORDS,
        embedding: int = 200,
        hidden: int = HIDDEN,
        layers: int = LAYERS,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        self.words = words
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(words, embedding)
        self.rnn = make_rnn(rnn_type, embedding, hidden, layers, dropout)
        self.decoder = nn.Linear(hidden, words)
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.uniform_(self.decoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)

    def forward(self, tokens: torch.Tensor, hidden: Hidden) -> tuple[torch.Tensor, Hidden]:
        emb = self.drop(self.encoder(tokens))
        output, hidden = self.rnn(emb, hidden)
        decoded = self.decoder(self.drop(output))
        return F.log_softmax(decoded.view(-1, self.words), dim=1), hidden


def make(rnn_type: str = "LSTM") -> RNNModel:
    with seeded():
        return RNNModel(rnn_type).eval()


def example_inputs(batch: int = 2, rnn_type: str = "LSTM") -> tuple[torch.Tensor, Hidden]:
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(WIKITEXT_2_WORDS, (SEQUENCE_LENGTH, batch), generator=generator)
    h0, c0 = 0.5 * torch.randn(2, LAYERS, batch, HIDDEN, generator=generator)
    return tokens, (h0, c0) if rnn_type == "LSTM" else h0


def dynamic_batch(rnn_type: str = "LSTM") -> dict[str, dict[int, str]]:
    names = ("tokens", "h0", "c0") if rnn_type == "LSTM" else ("tokens", "h0")
    return {name: {1: "batch"} for name in names}
