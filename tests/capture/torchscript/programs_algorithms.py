"""Algorithms that are written with loops over tensors: detection, decoding, tokens, tables."""

from __future__ import annotations

import torch
import torch.nn as nn
from torch import Tensor

from tests.capture.torchscript.control_flow.programs_flow import Typed, rows


def boxes(count: int) -> Tensor:
    corners = torch.arange(count * 2.0).reshape(count, 2) * 7 % 5
    return torch.cat([corners, corners + 1 + torch.arange(count * 2.0).reshape(count, 2) % 3], 1)


def scores(count: int, classes: int | None = None) -> Tensor:
    shape = (count,) if classes is None else (count, classes)
    return (torch.arange(1.0, 1 + count * (classes or 1)) * 0.37 % 1).reshape(shape)


def ints(*numbers: int) -> Tensor:
    return torch.tensor(numbers, dtype=torch.int64)


# -- detection ------------------------------------------------------------------------------------


def overlap(a: Tensor, b: Tensor) -> Tensor:
    sides = (torch.min(a[2:], b[2:]) - torch.max(a[:2], b[:2])).clamp(min=0)
    common = sides[0] * sides[1]
    return common / ((a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - common)


def suppression_by_flags(box, score, limit: float):
    order = torch.argsort(score, descending=True)
    kept: list[int] = []
    dropped = torch.zeros(box.size(0), dtype=torch.bool)
    for i in range(order.size(0)):
        k = int(order[i])
        if bool(dropped[k]):
            continue
        kept.append(k)
        for j in range(i + 1, order.size(0)):
            m = int(order[j])
            if not bool(dropped[m]) and bool(overlap(box[k], box[m]) > limit):
                dropped[m] = True
    return torch.tensor(kept, dtype=torch.long)


def suppression_by_shrinking(box, score, limit: float):
    order = score.sort(descending=True)[1]
    kept: list[Tensor] = []
    while order.numel() > 0:
        first = order[0]
        kept.append(first)
        if order.numel() == 1:
            break
        rest = order[1:]
        a, b = box[first], box[rest]
        sides = (torch.min(a[2:], b[:, 2:]) - torch.max(a[:2], b[:, :2])).clamp(min=0)
        common = sides[:, 0] * sides[:, 1]
        areas = (b[:, 2:] - b[:, :2]).prod(1) + (a[2:] - a[:2]).prod()
        order = rest[common / (areas - common) <= limit]
    if len(kept) == 0:
        return torch.zeros(0, dtype=torch.long)
    return torch.stack(kept)


def scores_decayed(box, score):
    score = score.clone()
    out = torch.zeros_like(score)
    alive = torch.ones(box.size(0), dtype=torch.bool)
    for _i in range(box.size(0)):
        k = int(torch.where(alive, score, torch.full_like(score, -1e9)).argmax())
        out[k] = score[k]
        alive[k] = False
        for j in range(box.size(0)):
            if alive[j]:
                score[j] = score[j] * torch.exp(-overlap(box[k], box[j]))
    return out


def best_of_each_class(score, box, limit: float):
    found_boxes: list[Tensor] = []
    found_scores: list[Tensor] = []
    labels: list[Tensor] = []
    for c in range(score.size(1)):
        kept = torch.where(score[:, c] > limit)[0]
        s, i = score[kept, c].topk(min(kept.size(0), 2))
        found_boxes.append(box[kept][i])
        found_scores.append(s)
        labels.append(torch.full((s.size(0),), c, dtype=torch.long))
    return {
        "boxes": torch.cat(found_boxes),
        "scores": torch.cat(found_scores),
        "labels": torch.cat(labels),
    }


# -- decoding -------------------------------------------------------------------------------------


def labels_collapsed(logits, lengths):
    n, t = logits.size(0), logits.size(1)
    out = torch.full((n, t), -1, dtype=torch.long)
    counts = torch.zeros(n, dtype=torch.long)
    best = logits.argmax(-1)
    for i in range(n):
        last = -1
        k = 0
        for j in range(int(lengths[i])):
            c = int(best[i, j])
            if c == last:
                continue
            last = c
            if c == 0:
                continue
            out[i, k] = c
            k += 1
        counts[i] = k
    return out, counts


def beams(logits, width: int):
    values = logits.size(1)
    best = torch.zeros(1)
    sequences = torch.zeros(1, 0, dtype=torch.long)
    for i in range(logits.size(0)):
        candidates = (best.unsqueeze(1) + logits[i]).view(-1)
        best, place = candidates.topk(min(width, candidates.size(0)))
        before = sequences[torch.div(place, values, rounding_mode="floor")]
        sequences = torch.cat([before, (place % values).unsqueeze(1)], 1)
    return sequences, best


def most_likely_path(emitted, transitions):
    score = emitted[0]
    back: list[Tensor] = []
    for i in range(1, emitted.size(0)):
        best, place = (score.unsqueeze(1) + transitions).max(0)
        back.append(place)
        score = best + emitted[i]
    last = score.argmax()
    path = [last]
    for i in range(len(back)):
        last = back[len(back) - 1 - i][last]
        path.append(last)
    path.reverse()
    return torch.stack(path), score.max()


def nucleus(logits, share: float):
    value, place = logits.softmax(-1).sort(descending=True)
    total = torch.zeros(1)
    n = 0
    for k in range(value.size(0)):
        total = total + value[k]
        n += 1
        if bool(total > share):
            break
    hidden = torch.ones_like(logits, dtype=torch.bool)
    hidden[place[:n]] = False
    return logits.masked_fill(hidden, float("-inf")), n


def repeated_ngrams_banned(logits, said, n: int):
    length = said.size(0)
    if length + 1 < n:
        return logits
    prefix = said[length - n + 1 :]
    banned: list[int] = []
    for i in range(length - n + 1):
        if torch.equal(said[i : i + n - 1], prefix):
            banned.append(int(said[i + n - 1]))
    out = logits.clone()
    for token in banned:
        out[token] = float("-inf")
    return out


class GreedyUntilAllEnd(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Embedding(8, 4)
        self.cell = nn.GRUCell(4, 4)
        self.head = nn.Linear(4, 8)

    def forward(self, h, end: int, limit: int):
        token = torch.zeros(h.size(0), dtype=torch.long)
        done = torch.zeros(h.size(0), dtype=torch.bool)
        said: list[Tensor] = []
        for _i in range(limit):
            h = self.cell(self.embed(token), h)
            token = torch.where(done, torch.full_like(token, end), self.head(h).argmax(-1))
            said.append(token)
            done = done | (token == end)
            if bool(done.all()):
                break
        if len(said) == 0:
            return torch.zeros(h.size(0), 0, dtype=torch.long)
        return torch.stack(said, 1)


# -- tokens and windows ---------------------------------------------------------------------------


def pairs_merged(token, pairs):
    for p in range(pairs.size(0)):
        merged: list[int] = []
        i = 0
        while i < token.size(0):
            is_pair = i + 1 < token.size(0) and int(token[i]) == int(pairs[p, 0])
            if is_pair and int(token[i + 1]) == int(pairs[p, 1]):
                merged.append(100 + p)
                i += 2
            else:
                merged.append(int(token[i]))
                i += 1
        token = torch.tensor(merged, dtype=torch.long)
    return token


def words_between(token, separator: int):
    words: list[Tensor] = []
    start = 0
    for i in range(token.size(0)):
        if int(token[i]) == separator:
            if i > start:
                words.append(token[start:i])
            start = i + 1
    if start < token.size(0):
        words.append(token[start:])
    lengths = torch.zeros(len(words), dtype=torch.long)
    for k, word in enumerate(words):
        lengths[k] = word.size(0)
    return lengths, len(words)


def windows(x, width: int, step: int):
    means: list[Tensor] = []
    i = 0
    while i + width <= x.size(0):
        means.append(x[i : i + width].mean(0))
        i += step
    if len(means) == 0:
        return torch.zeros(0, 2)
    return torch.stack(means)


def frames_between(x, factor: int):
    frames: list[Tensor] = []
    for i in range(x.size(0) - 1):
        for k in range(factor):
            share = k / factor
            frames.append(x[i] * (1 - share) + x[i + 1] * share)
    if x.size(0) > 0:
        frames.append(x[-1])
    return torch.stack(frames) if len(frames) > 0 else x


# -- tables ---------------------------------------------------------------------------------------


def prefix_table(token):
    table = torch.zeros(token.size(0), dtype=torch.long)
    k = 0
    for i in range(1, token.size(0)):
        while k > 0 and int(token[k]) != int(token[i]):
            k = int(table[k - 1])
        if int(token[k]) == int(token[i]):
            k += 1
        table[i] = k
    return table


def edit_distance(a, b):
    cost = torch.zeros(a.size(0) + 1, b.size(0) + 1, dtype=torch.long)
    cost[:, 0] = torch.arange(a.size(0) + 1)
    cost[0] = torch.arange(b.size(0) + 1)
    for i in range(a.size(0)):
        for j in range(b.size(0)):
            change = int(cost[i, j]) + (0 if a[i] == b[j] else 1)
            cost[i + 1, j + 1] = min(int(cost[i, j + 1]) + 1, int(cost[i + 1, j]) + 1, change)
    return cost[-1, -1]


def connected_parts(edges):
    n = edges.size(0)
    label = torch.arange(n)
    changed = True
    rounds = 0
    while changed:
        changed = False
        for i in range(n):
            for j in range(n):
                if bool(edges[i, j]) and bool(label[j] < label[i]):
                    label[i] = label[j]
                    changed = True
        rounds += 1
    return label, rounds


def stack_of_numbers(code):
    stack: list[int] = []
    for i in range(code.size(0)):
        value = int(code[i])
        if value >= 0:
            stack.append(value)
        elif value == -1 and len(stack) > 1:
            stack.append(stack.pop() + stack.pop())
        elif value == -2 and len(stack) > 1:
            stack.append(stack.pop() * stack.pop())
    return stack[-1] if len(stack) > 0 else -9


def largest_kept(x, k: int):
    kept: list[float] = []
    for i in range(x.size(0)):
        kept.append(float(x[i]))
        kept.sort(reverse=True)
        if len(kept) > k:
            kept.pop()
    return torch.tensor(kept)


def best_so_far(x):
    best: Tensor | None = None
    place = -1
    for i in range(x.size(0)):
        if best is None or bool(x[i].sum() > best.sum()):
            best = x[i]
            place = i
    if best is None:
        return torch.zeros(2), place
    return best, place


_DETECTED = [(boxes(n), scores(n), 0.2) for n in (6, 0, 1, 9)]
_LOGITS = torch.sin(torch.arange(105.0) * 5)
ALGORITHMS: list[Typed] = [
    (suppression_by_flags, _DETECTED),
    (suppression_by_shrinking, _DETECTED),
    (scores_decayed, [(boxes(n), scores(n)) for n in (4, 0, 1, 6)]),
    (best_of_each_class, [(scores(n, 3), boxes(n), 0.4) for n in (6, 0, 1, 9)]),
    (
        labels_collapsed,
        [
            (_LOGITS[:30].reshape(2, 5, 3), ints(5, 3)),
            (torch.zeros(0, 5, 3), ints()),
            (_LOGITS[:3].reshape(1, 1, 3), ints(0)),
            (_LOGITS[:63].reshape(3, 7, 3), ints(7, 0, 4)),
        ],
    ),
    (beams, [(_LOGITS[: n * 3].reshape(n, 3), w) for n, w in ((4, 3), (0, 3), (1, 2), (5, 7))]),
    (
        most_likely_path,
        [(_LOGITS[: n * 3].reshape(n, 3), _LOGITS[50:59].reshape(3, 3)) for n in (5, 1, 2)],
    ),
    (nucleus, [(_LOGITS[:6], 0.7), (_LOGITS[:0], 0.7), (_LOGITS[:1], 0.2), (_LOGITS[:9], 2.0)]),
    (
        repeated_ngrams_banned,
        [
            (_LOGITS[:6], ints(1, 2, 3, 1, 2), 3),
            (_LOGITS[:6], ints(1), 3),
            (_LOGITS[:6], ints(), 3),
            (_LOGITS[:6], ints(4, 4, 4), 2),
        ],
    ),
    (
        GreedyUntilAllEnd(),
        [
            (_LOGITS[: n * 4].reshape(n, 4), end, limit)
            for n, end, limit in ((3, 2, 6), (1, 2, 0), (2, 5, 3))
        ],
    ),
    (
        pairs_merged,
        [
            (ints(1, 2, 3, 1, 2, 2), torch.tensor([[1, 2], [100, 3]])),
            (ints(), torch.tensor([[1, 2]])),
            (ints(1, 2, 1), torch.zeros(0, 2, dtype=torch.int64)),
        ],
    ),
    (
        words_between,
        [(ints(1, 2, 0, 3, 0, 0, 4), 0), (ints(), 0), (ints(0, 0), 0), (ints(7, 7, 7), 0)],
    ),
    (windows, [(rows(7), 3, 2), (rows(0), 3, 2), (rows(3), 3, 1), (rows(9), 2, 5)]),
    (frames_between, [(rows(4), 3), (rows(0), 3), (rows(1), 2), (rows(2), 1)]),
    (prefix_table, [(ints(1, 2, 1, 2, 1, 3),), (ints(),), (ints(1),), (ints(1, 1, 1, 1),)]),
    (
        edit_distance,
        [
            (ints(1, 2, 3), ints(2, 3, 4, 5)),
            (ints(), ints(1)),
            (ints(1), ints()),
            (ints(1, 2), ints(1, 2)),
        ],
    ),
    (
        connected_parts,
        [(torch.ones(n, n).tril(1).triu(-1) > 0,) for n in (4, 0, 2)],
    ),
    (
        stack_of_numbers,
        [(ints(2, 3, -1, 4, -2),), (ints(),), (ints(-1),), (ints(5, -2, 6, -2),)],
    ),
    (largest_kept, [(scores(6), 3), (scores(1), 3), (scores(2), 0), (scores(5), 5)]),
    (best_so_far, [(rows(5),), (rows(0),), (rows(1),)]),
]
