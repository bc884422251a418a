import torch, time, sardonyx, warnings

warnings.simplefilter("ignore")
from torch import nn

m = (
    nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)
    )
    .cuda()
    .eval()
)
x = torch.randn(2, 3, 16, 16, device="cuda")
for c in ("export", "trace"):
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    b = torch.cuda.memory_allocated()
    p = sardonyx.export(m, (x,), capture=c, dynamic_axes={"input": {0: "n"}})
    print(c, "gpu growth", torch.cuda.max_memory_allocated() - b, p.stage_seconds["capture"])
    y = torch.randn(3, 3, 16, 16)
    print((p(y) - m(y.cuda()).cpu()).abs().max().item())


class Block(nn.Module):
    def __init__(s, d=4096, h=32, f=11008):
        super().__init__()
        s.n1 = nn.RMSNorm(d)
        s.n2 = nn.RMSNorm(d)
        s.q = nn.Linear(d, d, bias=False)
        s.k = nn.Linear(d, d, bias=False)
        s.v = nn.Linear(d, d, bias=False)
        s.o = nn.Linear(d, d, bias=False)
        s.g = nn.Linear(d, f, bias=False)
        s.u = nn.Linear(d, f, bias=False)
        s.d = nn.Linear(f, d, bias=False)
        s.h = h

    def forward(s, x):
        b, t, d = x.shape
        y = s.n1(x)
        q, k, v = (l(y).view(b, t, s.h, -1).transpose(1, 2) for l in (s.q, s.k, s.v))
        a = (
            nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            .transpose(1, 2)
            .reshape(b, t, d)
        )
        x = x + s.o(a)
        y = s.n2(x)
        return x + s.d(nn.functional.silu(s.g(y)) * s.u(y))


with torch.device("cuda"):
    torch.set_default_dtype(torch.bfloat16)
    big = nn.Sequential(
        nn.Embedding(32000, 4096), *(Block() for _ in range(32)), nn.Linear(4096, 32000, bias=False)
    ).eval()
torch.set_default_dtype(torch.float32)
print(sum(p.numel() for p in big.parameters()) / 1e9, "B")
ids = torch.randint(0, 32000, (1, 16), device="cuda")
for kw in ({}, {"dynamic_axes": {"input": {0: "b", 1: "t"}}}):
    for c in ("export", "trace"):
        torch.cuda.reset_peak_memory_stats()
        b = torch.cuda.memory_allocated()
        t = time.time()
        p = sardonyx.export(big, (ids,), capture=c, **kw)
        print(
            c,
            kw,
            "total",
            round(time.time() - t, 2),
            "capture",
            round(p.stage_seconds["capture"], 2),
            "gpu growth",
            torch.cuda.max_memory_allocated() - b,
            flush=True,
        )
