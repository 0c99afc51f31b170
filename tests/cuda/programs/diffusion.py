"""Two blocks of an image diffusion model as many are written: convolutions, group norms, attention; NCHW, FP32."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import turns
from torch import nn
from torch.nn import functional as F

BATCH, CHANNELS, SIDE, HEADS, GROUPS, EMBEDDING = 2, 320, 32, 8, 32, 1280


class Residual(nn.Module):
    """Two convolutions behind group norms, the time step added between them."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = (nn.GroupNorm(GROUPS, CHANNELS) for _ in range(2))
        self.conv1, self.conv2 = (nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1) for _ in range(2))
        self.time = nn.Linear(EMBEDDING, CHANNELS)

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        """[batch, channels, side, side] → the same."""
        y = self.conv1(F.silu(self.norm1(x)))
        y = y + self.time(F.silu(time))[:, :, None, None]
        out: torch.Tensor = x + self.conv2(F.silu(self.norm2(y)))
        return out


class Transformer(nn.Module):
    """Self-attention over the pixels and a gated feed-forward layer."""

    def __init__(self, fused: bool) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(GROUPS, CHANNELS)
        self.norm1, self.norm2 = (nn.LayerNorm(CHANNELS) for _ in range(2))
        self.q, self.k, self.v = (nn.Linear(CHANNELS, CHANNELS, bias=False) for _ in range(3))
        self.out = nn.Linear(CHANNELS, CHANNELS)
        self.wide, self.narrow = nn.Linear(CHANNELS, 8 * CHANNELS), nn.Linear(4 * CHANNELS, CHANNELS)
        self.fused = fused

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[batch, channels, side, side] → the same."""
        batch, channels, height, width = x.shape
        tokens = self.norm(x).flatten(2).transpose(1, 2)
        y = self.norm1(tokens)
        q, k, v = (
            one(y).view(batch, -1, HEADS, channels // HEADS).transpose(1, 2)
            for one in (self.q, self.k, self.v)
        )
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v)
        else:
            y = (q @ k.transpose(-2, -1) * (channels // HEADS) ** -0.5).softmax(dim=-1) @ v
        tokens = tokens + self.out(y.transpose(1, 2).reshape(batch, -1, channels))
        value, gate = self.wide(self.norm2(tokens)).chunk(2, dim=-1)
        tokens = tokens + self.narrow(value * F.gelu(gate))
        return x + tokens.transpose(1, 2).reshape(batch, channels, height, width)


class Model(nn.Module):
    """Residual and transformer, twice."""

    def __init__(self, fused: bool) -> None:
        super().__init__()
        self.residuals = nn.ModuleList(Residual() for _ in range(2))
        self.transformers = nn.ModuleList(Transformer(fused) for _ in range(2))

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        """[batch, channels, side, side] → the same."""
        for residual, transformer in zip(self.residuals, self.transformers, strict=True):
            x = transformer(residual(x, time))
        return x


def build(
    device: str,
    *,
    channels_last: bool = False,
    fused: bool = False,
    tf32: bool = False,
    graph: bool = False,
    dtype: torch.dtype = torch.float32,
    wrap: Any = None,
) -> turns.Step:
    """One denoising step of random weights."""
    model = Model(fused).to(device=device, dtype=dtype).eval().requires_grad_(False)
    x = torch.randn(BATCH, CHANNELS, SIDE, SIDE, device=device, dtype=dtype)
    time = torch.randn(BATCH, EMBEDDING, device=device, dtype=dtype)
    if channels_last:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    if wrap is None and not graph:
        turns.mark_modules(model, 3)
    called = model if wrap is None else wrap(model)

    @torch.no_grad()
    def step() -> None:
        torch.backends.cuda.matmul.allow_tf32 = tf32
        called(x, time)

    return turns.captured(step) if graph else step


variant = partial(turns.variant, build)

VARIANTS = {
    "base": variant(),
    "channels_last": variant(channels_last=True),
    "tf32": variant(tf32=True),
    "fp16": variant(dtype=torch.float16),
    "fused_attention": variant(fused=True),
    "compiled": variant(inductor=True),
    "graph": variant(graph=True),
    "all": variant(inductor=True, channels_last=True, fused=True, dtype=torch.float16),
}

if __name__ == "__main__":
    turns.main("diffusion", VARIANTS)
