"""Models whose counts depend on their data, as people write and script them."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class BeamSearch(nn.Module):
    """Keeps the best `beams` continuations until all of them end or the limit is reached."""

    def __init__(self, vocabulary: int = 11, hidden: int = 8, beams: int = 3) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, hidden)
        self.cell = nn.GRUCell(hidden, hidden)
        self.head = nn.Linear(hidden, vocabulary)
        self.beams = beams
        self.end = 1

    def forward(self, start: Tensor, limit: int) -> tuple[Tensor, Tensor]:
        hidden = start.unsqueeze(0).repeat(self.beams, 1)
        tokens = torch.zeros(self.beams, 1, dtype=torch.int64)
        scores = torch.full([self.beams], -1e9)
        scores[0] = 0.0
        for _ in range(limit):
            hidden = self.cell(self.embedding(tokens[:, -1]), hidden)
            log_probabilities = torch.log_softmax(self.head(hidden), dim=-1)
            ended = tokens[:, -1] == self.end
            stays = torch.full_like(log_probabilities, -1e9)
            stays[:, self.end] = 0.0
            log_probabilities = torch.where(ended.unsqueeze(1), stays, log_probabilities)
            total = (scores.unsqueeze(1) + log_probabilities).flatten()
            scores, places = total.topk(self.beams)
            vocabulary = log_probabilities.size(1)
            beam = torch.div(places, vocabulary, rounding_mode="floor")
            hidden = hidden[beam]
            tokens = torch.cat([tokens[beam], (places % vocabulary).unsqueeze(1)], dim=1)
            if bool((tokens[:, -1] == self.end).all()):
                break
        return tokens, scores


class DecoderLayer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        keys = torch.cat([keys, self.key(x)], dim=0)
        values = torch.cat([values, self.value(x)], dim=0)
        weights = torch.softmax(self.query(x) @ keys.t() / keys.size(1) ** 0.5, dim=-1)
        return x + self.out(weights @ values), keys, values


class GreedyDecoder(nn.Module):
    """One token after the other, with a list of keys and values per layer."""

    def __init__(self, vocabulary: int = 13, width: int = 8, layers: int = 2) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList([DecoderLayer(width) for _ in range(layers)])
        self.head = nn.Linear(width, vocabulary)
        self.width = width

    def forward(self, prompt: Tensor, limit: int) -> Tensor:
        keys: list[Tensor] = []
        values: list[Tensor] = []
        for _ in self.layers:
            keys.append(torch.zeros(0, self.width))
            values.append(torch.zeros(0, self.width))
        token = prompt[:1]
        produced = [token]
        position = 1
        while position < prompt.size(0) + limit:
            x = self.embedding(token)
            for index, layer in enumerate(self.layers):
                x, keys[index], values[index] = layer(x, keys[index], values[index])
            if position < prompt.size(0):
                token = prompt[position : position + 1]
            else:
                token = self.head(x).argmax(dim=-1)
            produced.append(token)
            if int(token) == 0:
                break
            position += 1
        return torch.cat(produced)


class LoopedRNN(nn.Module):
    """A recurrent net written as a Python loop over time, states collected in a list."""

    def __init__(self, inputs: int = 3, hidden: int = 5) -> None:
        super().__init__()
        self.input = nn.Linear(inputs, hidden)
        self.recurrent = nn.Linear(hidden, hidden)
        self.hidden = hidden

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        state = torch.zeros(x.size(1), self.hidden)
        states: list[Tensor] = []
        for step in range(x.size(0)):
            new = torch.tanh(self.input(x[step]) + self.recurrent(state))
            state = torch.where((step < lengths).unsqueeze(1), new, state)
            states.append(state)
        return torch.stack(states), state


class SlidingWindow(nn.Module):
    """Runs a small net on windows of a long signal and adds up what overlaps."""

    def __init__(self, window: int = 8, step: int = 5) -> None:
        super().__init__()
        self.net = nn.Conv1d(1, 1, 3, padding=1)
        self.window = window
        self.step = step

    def forward(self, signal: Tensor) -> Tensor:
        length = signal.size(-1)
        out = torch.zeros_like(signal)
        weight = torch.zeros_like(signal)
        start = 0
        while start < length:
            end = min(start + self.window, length)
            piece = signal[:, :, start:end]
            out[:, :, start:end] += self.net(piece)
            weight[:, :, start:end] += 1.0
            start += self.step
        return out / weight


class DetectionPostprocessing(nn.Module):
    """Boxes above a score, per class, without those that overlap a better one."""

    def __init__(self, threshold: float = 0.5, overlap: float = 0.5) -> None:
        super().__init__()
        self.threshold = threshold
        self.overlap = overlap

    def kept(self, boxes: Tensor, scores: Tensor) -> Tensor:
        order = scores.argsort(descending=True, stable=True)
        boxes = boxes[order]
        keep = torch.ones(boxes.size(0), dtype=torch.bool)
        for i in range(boxes.size(0)):
            if bool(keep[i]):
                corner = torch.maximum(boxes[i, :2], boxes[:, :2])
                far = torch.minimum(boxes[i, 2:], boxes[:, 2:])
                shared = (far - corner).clamp(min=0).prod(dim=1)
                area = (boxes[:, 2:] - boxes[:, :2]).prod(dim=1)
                share = shared / (area + area[i] - shared)
                later = torch.arange(boxes.size(0)) > i
                keep[later & (share > self.overlap)] = False
        return order[keep]

    def forward(self, boxes: Tensor, scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        found_boxes: list[Tensor] = []
        found_scores: list[Tensor] = []
        found_labels: list[Tensor] = []
        for label in range(scores.size(1)):
            of_label = scores[:, label]
            above = torch.nonzero(of_label > self.threshold).squeeze(1)
            if above.numel() == 0:
                continue
            candidates, values = boxes[above], of_label[above]
            best = self.kept(candidates, values)
            found_boxes.append(candidates[best])
            found_scores.append(values[best])
            found_labels.append(torch.full([best.size(0)], label))
        if len(found_boxes) == 0:
            return torch.zeros(0, 4), torch.zeros(0), torch.zeros(0, dtype=torch.int64)
        return torch.cat(found_boxes), torch.cat(found_scores), torch.cat(found_labels)


class MixtureOfExperts(nn.Module):
    """Each expert runs on the tokens that were sent to it, if there are any."""

    def __init__(self, width: int = 6, experts: int = 4, chosen: int = 2) -> None:
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.experts = nn.ModuleList([nn.Linear(width, width) for _ in range(experts)])
        self.chosen = chosen

    def forward(self, x: Tensor) -> Tensor:
        weights, places = torch.softmax(self.gate(x), dim=-1).topk(self.chosen, dim=-1)
        out = torch.zeros_like(x)
        for index, expert in enumerate(self.experts):
            hit = torch.nonzero(places == index)
            if hit.size(0) > 0:
                rows, slots = hit[:, 0], hit[:, 1]
                out.index_add_(0, rows, expert(x[rows]) * weights[rows, slots].unsqueeze(1))
        return out
