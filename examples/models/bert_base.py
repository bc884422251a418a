"""The encoder and pooler of BERT-base, uncased (Devlin et al., 2018); 109,482,240 parameters."""

import torch
from torch import nn
from torch.nn import functional as F

from .initialize import seeded

WORDS = 30522
POSITIONS = 512
TOKEN_TYPES = 2
WIDTH = 768
HEADS = 12
MLP_WIDTH = 3072
LAYERS = 12
LAYER_NORM_EPS = 1e-12
DROPOUT = 0.1
SEQUENCE_LENGTH = 128


class Embeddings(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(WORDS, WIDTH, padding_idx=0)
        self.position_embeddings = nn.Embedding(POSITIONS, WIDTH)
        self.token_type_embeddings = nn.Embedding(TOKEN_TYPES, WIDTH)
        self.layer_norm = nn.LayerNorm(WIDTH, eps=LAYER_NORM_EPS)
        self.dropout = nn.Dropout(DROPOUT)
        self.register_buffer("position_ids", torch.arange(POSITIONS)[None], persistent=False)

    def forward(self, input_ids: torch.Tensor, token_type_ids: torch.Tensor) -> torch.Tensor:
        position_ids = self.position_ids[:, : input_ids.shape[1]]
        x = self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids)
        x = x + self.position_embeddings(position_ids)
        return self.dropout(self.layer_norm(x))


class SelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH)
        self.key = nn.Linear(WIDTH, WIDTH)
        self.value = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor, additive_mask: torch.Tensor) -> torch.Tensor:
        query, key, value = (
            projection(x).unflatten(-1, (HEADS, WIDTH // HEADS)).transpose(1, 2)
            for projection in (self.query, self.key, self.value)
        )
        dropout = DROPOUT if self.training else 0.0
        attended = F.scaled_dot_product_attention(query, key, value, additive_mask, dropout)
        return attended.transpose(1, 2).flatten(2)


class Layer(nn.Module):
    """Attention and MLP, each followed by a residual sum and LayerNorm (post-norm)."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = SelfAttention()
        self.attention_output = nn.Linear(WIDTH, WIDTH)
        self.attention_norm = nn.LayerNorm(WIDTH, eps=LAYER_NORM_EPS)
        self.intermediate = nn.Linear(WIDTH, MLP_WIDTH)
        self.output = nn.Linear(MLP_WIDTH, WIDTH)
        self.output_norm = nn.LayerNorm(WIDTH, eps=LAYER_NORM_EPS)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, x: torch.Tensor, additive_mask: torch.Tensor) -> torch.Tensor:
        attended = self.dropout(self.attention_output(self.attention(x, additive_mask)))
        x = self.attention_norm(x + attended)
        transformed = self.dropout(self.output(F.gelu(self.intermediate(x))))
        return self.output_norm(x + transformed)


class BertModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embeddings = Embeddings()
        self.encoder = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.pooler = nn.Linear(WIDTH, WIDTH)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The last hidden state of every token, and the pooled state of the first."""
        x = self.embeddings(input_ids, token_type_ids)
        hidden_by_mask = 1.0 - attention_mask[:, None, None, :].to(x.dtype)
        additive_mask = hidden_by_mask * torch.finfo(x.dtype).min
        for layer in self.encoder:
            x = layer(x, additive_mask)
        return x, torch.tanh(self.pooler(x[:, 0]))


def make() -> BertModel:
    with seeded():
        return BertModel().eval()


def example_inputs(batch: int = 2) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Sentence pairs of falling length, padded to SEQUENCE_LENGTH."""
    generator = torch.Generator().manual_seed(1)
    input_ids = torch.randint(1, WORDS, (batch, SEQUENCE_LENGTH), generator=generator)
    position = torch.arange(SEQUENCE_LENGTH)
    length = SEQUENCE_LENGTH - 16 * torch.arange(1, batch + 1)[:, None]
    attention_mask = (position < length).long()
    token_type_ids = (position >= length // 2).long() * attention_mask
    return input_ids * attention_mask, attention_mask, token_type_ids


def dynamic_batch() -> dict[str, dict[int, str]]:
    return {name: {0: "batch"} for name in ("input_ids", "attention_mask", "token_type_ids")}
