"""A decode step of a small LLaMA-like model as many are written: one token, a cache that grows by ``torch.cat``."""

from __future__ import annotations

from typing import Any

import torch
import turns
from torch import nn
from torch.nn import functional as F

WIDTH, HEADS, LAYERS, HIDDEN, VOCABULARY, PAST = 1024, 16, 3, 2816, 32_000, 511
HEAD = WIDTH // HEADS


class Norm(nn.Module):
    """RMS norm with its steps written out, in FP32 as published."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[batch, 1, width] → the same."""
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * wide.to(x.dtype)


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotary positions: [batch, heads, 1, head] → the same."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class Attention(nn.Module):
    """Attention of one new token to the cache and itself."""

    def __init__(self, cat: bool, fused: bool, batch: int, merged: bool) -> None:
        super().__init__()
        if merged:
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        else:
            self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))
        self.o = nn.Linear(WIDTH, WIDTH, bias=False)
        self.merged = merged
        self.cat, self.fused = cat, fused
        room = PAST if cat else PAST + 1
        self.register_buffer("keys", torch.randn(batch, HEADS, room, HEAD))
        self.register_buffer("values", torch.randn(batch, HEADS, room, HEAD))

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        """[batch, 1, width] → the same."""
        batch = x.shape[0]
        apart = self.qkv(x).split(WIDTH, dim=-1) if self.merged else (self.q(x), self.k(x), self.v(x))
        q, k, v = (one.view(batch, 1, HEADS, HEAD).transpose(1, 2) for one in apart)
        q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        if self.cat:
            k, v = torch.cat((self.keys, k), dim=2), torch.cat((self.values, v), dim=2)
        else:
            self.keys[:, :, PAST:] = k
            self.values[:, :, PAST:] = v
            k, v = self.keys, self.values
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v)
        else:
            scores = (q @ k.transpose(-2, -1)) / HEAD**0.5
            y = scores.float().softmax(dim=-1).to(x.dtype) @ v
        out: torch.Tensor = self.o(y.transpose(1, 2).reshape(batch, 1, WIDTH))
        return out


class Layer(nn.Module):
    """Attention and a gated feed-forward layer."""

    def __init__(self, cat: bool, fused: bool, batch: int, merged: bool) -> None:
        super().__init__()
        self.norm1, self.norm2 = Norm(), Norm()
        self.attention = Attention(cat, fused, batch, merged)
        if merged:
            self.gate_up = nn.Linear(WIDTH, 2 * HIDDEN, bias=False)
        else:
            self.gate, self.up = (nn.Linear(WIDTH, HIDDEN, bias=False) for _ in range(2))
        self.merged = merged
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        """[batch, 1, width] → the same."""
        x = x + self.attention(self.norm1(x), cos, sin)
        y = self.norm2(x)
        gate, up = self.gate_up(y).chunk(2, dim=-1) if self.merged else (self.gate(y), self.up(y))
        out: torch.Tensor = x + self.down(F.silu(gate) * up)
        return out


class Model(nn.Module):
    """One token of each sequence → the next ones, greedily."""

    def __init__(self, cat: bool, fused: bool, batch: int, merged: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Layer(cat, fused, batch, merged) for _ in range(LAYERS))
        self.norm = Norm()
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        angles = PAST / 10_000 ** (torch.arange(0, HEAD, 2) / HEAD)
        self.register_buffer("cos", torch.cat((angles, angles)).cos())
        self.register_buffer("sin", torch.cat((angles, angles)).sin())

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """[batch, 1] → [batch]."""
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, self.cos, self.sin)
        return self.head(self.norm(x))[:, -1].argmax(dim=-1)


def build(
    device: str,
    *,
    cat: bool = True,
    fused: bool = False,
    graph: bool = False,
    batch: int = 1,
    merged: bool = False,
    wrap: Any = None,
) -> turns.Step:
    """One decode step of random weights."""
    model = (
        Model(cat, fused, batch, merged).to(device=device, dtype=torch.bfloat16).eval().requires_grad_(False)
    )
    if wrap is None and not graph:
        turns.mark_modules(model, 3)
    called = model if wrap is None else wrap(model)
    tokens = torch.randint(0, VOCABULARY, (batch, 1), device=device)

    @torch.no_grad()
    def step() -> None:
        called(tokens)

    return turns.captured(step) if graph else step


def variant(mode: str = "", **options: Any) -> turns.Build:
    """The program with these options."""
    made = turns.compiled(build, mode=mode) if mode else build
    return lambda device: made(device, **options)


VARIANTS = {
    "base": variant(),
    "graph": variant(graph=True),
    "compiled": variant(mode="default"),
    "fused_attention": variant(fused=True),
    "static_cache": variant(cat=False),
    "merged_products": variant(merged=True),
    "batch_8": variant(batch=8),
    "all": variant(mode="reduce-overhead", cat=False, fused=True),
}

if __name__ == "__main__":
    turns.main("decode", VARIANTS)
