"""Programs that carry tensors whose number of dims no iteration settles."""

from __future__ import annotations

import torch

torch.manual_seed(0)
COUNTED = [(torch.randn(3, 4), count) for count in (1, 0, 2, 7)]
SIZED = [(torch.randn(size, 4), count) for size, count in ((3, 1), (1, 0), (0, 2), (1, 7), (2, 5))]
MANY_DIMS = [
    (torch.randn(sizes), 2)
    for sizes in (
        (2, 3, 2, 3, 2, 3, 2),
        (1, 2, 1, 2, 1, 2, 1),
        (1, 1, 1, 1, 1, 1, 3),
        (2, 1, 0, 1, 1, 1, 4),
    )
]


def alternating(x, n: int):
    for _i in range(n):
        x = x.unsqueeze(0) if x.dim() == 2 else x.squeeze(0)
    return x * 2


def alternating_by_length_of_shape(x, n: int):
    for _i in range(n):
        if len(x.shape) == 2:
            x = x.unsqueeze(1) + 1
        else:
            x = x.sum(1)
    return x


def alternating_otherwise(x, n: int):
    for _i in range(n):
        if x.dim() != 2:
            x = x[0] * 2
        else:
            x = torch.stack([x, x + 1])
    return x.relu()


def growing(x, n: int):
    for _i in range(n):
        x = x.unsqueeze(0)
    return x


def growing_at_the_end(x, n: int):
    for _i in range(n):
        x = x.unsqueeze(-1)
    return x


def growing_in_the_middle(x, n: int):
    for _i in range(n):
        x = (x.exp() / 2).unsqueeze(1)
    return x, x.dim(), x.numel()


def growing_elementwise(x, n: int):
    for i in range(n):
        x = (x * 2 - i).relu().unsqueeze(0)
    return torch.exp(-x) + 1


def growing_to_a_scalar(x, n: int):
    for _i in range(n):
        x = x.unsqueeze(0)
    return x.sum() + x.mean() * x.max() - x.min()


def growing_number_of_elements(x, n: int):
    for _i in range(n):
        x = x.unsqueeze(0)
    return x.numel()


def growing_number_of_dims(x, n: int):
    for _i in range(n):
        x = x.unsqueeze(0)
    return x.dim(), len(x.shape), x.ndim


def growing_last_size(x, n: int):
    for _i in range(n):
        x = x.unsqueeze(0)
    return x.size(-1), x.shape[-2], x.size(0)


def growing_shape(x, n: int):
    for _i in range(n):
        x = x.unsqueeze(0)
    return x.shape


def growing_product_of_shape(x, n: int):
    for _i in range(n):
        x = x.unsqueeze(0)
    total = 1
    for size in x.shape:
        total = total * size
    return total


def growing_line(x, n: int):
    for _i in range(n):
        x = x.unsqueeze(0)
    return x.reshape(-1), x.flatten(), x.view(-1), x.ravel()


def growing_rows(x, n: int):
    for _i in range(n):
        x = x.unsqueeze(0)
    return x.reshape(-1, 4) @ torch.ones(4, 2), x.view(-1, x.size(-1)).sum(0)


def growing_added_to_another(x, n: int):
    y = x * 3
    for _i in range(n):
        x = x.unsqueeze(0)
        y = y.unsqueeze(0).unsqueeze(0)
    return x + y


def growing_added_to_the_first(x, n: int):
    y = x
    for _i in range(n):
        y = y.unsqueeze(1) * 2
    return y + x, x - y


def growing_compared(x, n: int):
    y = x
    for _i in range(n):
        y = y.unsqueeze(0)
    return torch.where(y > 0, y, x * 2)


def growing_by_broadcast(x, n: int):
    y = torch.ones(4)
    for _i in range(n):
        y = (y + x).unsqueeze(1)
    return y


def growing_last_dim(x, n: int):
    for _i in range(n):
        x = x.unsqueeze(0)
    return x.softmax(-1), x.sum(-1), x.mean(-1, keepdim=True), x.argmax(-1)


def growing_first_dim(x, n: int):
    for _i in range(n):
        x = x.unsqueeze(0)
    return x.sum(0), x[0], x.max(0)[0]


def growing_linear(x, n: int):
    for _i in range(n):
        x = x.unsqueeze(0)
    return torch.nn.functional.linear(x, torch.ones(5, 4)), x @ torch.ones(4, 3)


def growing_normalized(x, n: int):
    for _i in range(n):
        x = x.unsqueeze(0)
    return torch.nn.functional.layer_norm(x, [4])


def growing_squeezed(x, n: int):
    for _i in range(n):
        x = x.unsqueeze(0)
    return x.squeeze()


def growing_squeezed_first(x, n: int):
    for _i in range(n):
        x = x.unsqueeze(0)
    return x.squeeze(0), x.squeeze(-1)


def growing_written(x, n: int):
    y = x.clone()
    z = y
    for _i in range(n):
        z = z.unsqueeze(0)
    z += 1
    z.mul_(2)
    return y, z


def growing_written_in_the_loop(x, n: int):
    y = x.clone()
    z = y
    for _i in range(n):
        z = z.unsqueeze(0)
        z.add_(1)
    return y, z


def growing_transposed(x, n: int):
    z = x.t()
    for _i in range(n):
        z = z.unsqueeze(0)
    return z * 2


def growing_written_by_another(x, n: int):
    z = x.clone()
    for _i in range(n):
        z = z.unsqueeze(0)
    z += x
    return z


def growing_to_where_it_is_known(x, n: int):
    for _i in range(n):
        x = x.unsqueeze(0)
    if x.dim() == 3:
        x = x.transpose(1, 2).contiguous() @ torch.ones(3, 2)
    return x


def growing_to_one_of_two(x, n: int):
    for _i in range(n):
        x = x.unsqueeze(0)
    if x.dim() == 2:
        y = x.t()
    elif x.dim() == 3:
        y = x[0].t()
    else:
        y = torch.zeros(4, 3)
    return y


def growing_written_where_it_is_known(x, n: int):
    y = x.clone()
    z = y
    for _i in range(n):
        z = z.unsqueeze(0)
    if z.dim() == 3:
        z[0, 1] = 5.0
    return y


def growing_in_two_loops(x, n: int):
    for _i in range(n):
        x = x.unsqueeze(0)
        for _j in range(n):
            x = x.unsqueeze(-1) + 1
    return x


def shrinking(x, n: int):
    for _i in range(n):
        x = x.unsqueeze(0).unsqueeze(0)
    while x.dim() > 2:
        x = x.squeeze(0)
    return x


def shrinking_by_sums(x, n: int):
    for _i in range(n):
        x = x.unsqueeze(0)
    while x.dim() > 0:
        x = x.sum(0)
    return x


def of_other_dtypes(x, n: int):
    for _i in range(n):
        x = x.unsqueeze(0)
    y = x.to(torch.float64)
    z = (x > 0).int()
    return y, z, torch.zeros_like(x), x.type_as(y)


def of_the_dtype_of_another(x, n: int):
    y = x.double()
    for _i in range(n):
        y = y.unsqueeze(0)
    return x.type_as(y), y.type_as(x), x.to(y), y.to(x), x.sum().to(y)


def in_a_tuple(x, n: int):
    both = (x, x * 2)
    for _i in range(n):
        both = (both[1].unsqueeze(0), both[0])
    return both


def in_a_branch(x, n: int):
    for i in range(n):
        if i % 2 == 0:
            x = x.unsqueeze(0)
        else:
            x = x + 1
    return x


def in_an_optional(x, n: int):
    for i in range(n):
        y = x if i > 2 else None
        x = x.unsqueeze(0)
        if y is not None:
            x = x + y.sum()
    return x


def elements_chosen(x, n: int):
    for _i in range(n):
        x = x.unsqueeze(0)
    return x[x > 0], torch.masked_select(x, x < 0)


def read_as_number(x, n: int):
    y = x.sum()
    for _i in range(n):
        y = y.unsqueeze(0)
    return x * float(y), y.item()


def checked(x, n: int):
    for _i in range(n):
        x = x.unsqueeze(0) if x.dim() == 2 else x[0] + 1
    if x.dim() != 2:
        x = x[0]
    assert x.dim() == 2
    return x.t()


def reduced_to_no_dims(x, n: int):
    y = x.sum(0)
    for _i in range(n):
        y = y.sum(0, keepdim=True).squeeze()
    z = y.cumsum(0)
    return y.sum(-1), y.softmax(0), z, z.dim(), y.argmax(-1), y.sum(0).dim()


def of_its_shape(x, n: int):
    y = x
    for _i in range(n):
        y = y.unsqueeze(0)
    return torch.zeros(y.shape) + 1, (x * 2).reshape(y.shape), (x * 2).view(y.size())


def of_two_questions(x, n: int):
    for _i in range(n):
        x = x.unsqueeze(0)
    if x.dim() == 3 and n > 0:
        return x.transpose(1, 2)
    if not (x.dim() == 4):  # noqa: SIM201
        return x
    return x.permute(0, 1, 3, 2)


def of_either_question(x, n: int):
    for _i in range(n):
        x = x.unsqueeze(0)
    if x.dim() != 4 or n < 0:
        return x * 2
    return x.permute(0, 1, 3, 2)


def joined_at_the_front(x, n: int):
    y = x
    for i in range(n):
        y = torch.stack([y, y + i])
        y = torch.cat([y, y * 2])
    return y, torch.cat([y, y])


def rows_of_places(x, n: int):
    places = torch.tensor([0, 0])
    for _i in range(n):
        places = places.unsqueeze(0)
    return x[places], torch.nn.functional.embedding(places, x)


def like_another(x, n: int):
    y = x
    for _i in range(n):
        y = y.unsqueeze(0)
    return y.view_as(x), x.sum() * y.expand_as(y * 2), y.reshape_as(y + 1)


def carried_in_objects(x, n: int):
    held = {"x": x, "y": x * 2}
    both = [x, x * 2]
    for _i in range(n):
        held["x"] = held["x"].unsqueeze(0)
        both[0] = both[0].unsqueeze(0) + both[1]
    return held, both


def left_early(x, n: int):
    for _i in range(n):
        x = x.unsqueeze(0)
        if x.dim() == 5:
            return x * 2
    return x


def last_one(x, n: int):
    last: torch.Tensor | None = None
    for _i in range(n):
        last = x
        x = x.unsqueeze(0)
    if last is None:
        last = x * 2
    return last


def sizes_in_a_list(x, n: int):
    sizes = [1]
    whole = [-1]
    for _i in range(n):
        sizes.append(2)
        whole.append(1)
    return torch.ones(sizes), torch.full(sizes, 3.0), x.reshape(whole)


def many_dims_squeezed(x, n: int):
    y = x.squeeze()
    return y * 2, y.dim(), y.sum(-1), y.reshape(-1)[:n]


def many_dims_squeezed_in_place(x, n: int):
    y = x * 2
    z = y
    y.squeeze_()
    return y, z.dim() + n


def empty_or_more_concatenated(x, n: int):
    y = x
    for _ in range(n):
        y = y.unsqueeze(0)
    out = torch.zeros(0)
    if n > 1:
        out = torch.cat([out, y])
    return torch.cat([out, y]), torch.cat([torch.zeros(0), out, y, torch.zeros(0)])


PROGRAMS = [
    (program, inputs)
    for inputs, programs in (
        (
            COUNTED,
            (
                growing_added_to_another,
                growing_to_where_it_is_known,
                growing_to_one_of_two,
                growing_written_where_it_is_known,
                growing_by_broadcast,
                joined_at_the_front,
                carried_in_objects,
                like_another,
                rows_of_places,
                sizes_in_a_list,
                checked,
                alternating_otherwise,
                empty_or_more_concatenated,
            ),
        ),
        (
            SIZED,
            (
                alternating,
                alternating_by_length_of_shape,
                growing,
                growing_at_the_end,
                growing_in_the_middle,
                growing_elementwise,
                growing_number_of_elements,
                growing_number_of_dims,
                growing_last_size,
                growing_shape,
                growing_product_of_shape,
                growing_line,
                growing_rows,
                growing_added_to_the_first,
                growing_compared,
                growing_last_dim,
                growing_linear,
                growing_normalized,
                growing_squeezed,
                growing_squeezed_first,
                growing_written,
                growing_written_in_the_loop,
                growing_transposed,
                growing_written_by_another,
                growing_in_two_loops,
                shrinking,
                shrinking_by_sums,
                of_other_dtypes,
                of_the_dtype_of_another,
                in_a_tuple,
                in_a_branch,
                in_an_optional,
                elements_chosen,
                read_as_number,
                of_two_questions,
                of_either_question,
                left_early,
                last_one,
                reduced_to_no_dims,
                of_its_shape,
            ),
        ),
        (MANY_DIMS, (many_dims_squeezed, many_dims_squeezed_in_place)),
        (
            [pair for pair in SIZED if pair[0].size(0)],
            (
                growing_first_dim,
                growing_to_a_scalar,
            ),
        ),
    )
    for program in programs
]
