"""A training step of a small GPT as many are written: FP32, plain attention, an odd vocabulary, AdamW by parameter."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import turns
from torch import nn
from torch.nn import functional as F

# 32,000 and one token for padding, as fine-tuned models often have.
VOCABULARY, WIDTH, HEADS, LAYERS, TOKENS, BATCH = 32_001, 512, 8, 2, 256, 4
PADDED = 32_064


class Attention(nn.Module):
    """Causal self-attention with the scores written out."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("mask", torch.tril(torch.ones(TOKENS, TOKENS, dtype=torch.bool)))
        self.fused = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[batch, tokens, width] → the same."""
        batch, tokens, _ = x.shape
        q, k, v = (
            part.view(batch, tokens, HEADS, WIDTH // HEADS).transpose(1, 2)
            for part in self.qkv(x).split(WIDTH, dim=2)
        )
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(-2, -1) * (WIDTH // HEADS) ** -0.5
            y = scores.masked_fill(~self.mask, float("-inf")).softmax(dim=-1) @ v
        out: torch.Tensor = self.out(y.transpose(1, 2).reshape(batch, tokens, WIDTH))
        return out


class Block(nn.Module):
    """Attention and a feed-forward layer, each behind a norm and beside a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[batch, tokens, width] → the same."""
        x = x + self.attention(self.norm1(x))
        out: torch.Tensor = x + self.mlp(self.norm2(x))
        return out


class Model(nn.Module):
    """Tokens → the loss of the next ones."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, WIDTH)
        self.position = nn.Parameter(torch.zeros(TOKENS, WIDTH))
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Both [batch, tokens]; a scalar."""
        x = self.embedding(tokens) + self.position
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


def build(
    device: str,
    *,
    vocabulary: int = VOCABULARY,
    tf32: bool = False,
    bf16: bool = False,
    fused: bool = False,
    foreach: bool = False,
    attention: bool = False,
    graph: bool = False,
    wrap: Any = None,
) -> turns.Step:
    """One training step on random tokens."""
    model = Model(vocabulary).to(device)
    for block in model.blocks:
        block.attention.fused = attention
    if wrap is None and not graph:
        turns.mark_modules(model, 3)
    called = model if wrap is None else wrap(model)
    # A loop over the parameters, as before torch 2.0, with sharded parameters, and in optimisers people write.
    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=1e-4,
        foreach=foreach and not fused,
        fused=fused and device == "cuda",
        capturable=graph and device == "cuda",
    )
    tokens = torch.randint(0, VOCABULARY, (BATCH, TOKENS), device=device)
    targets = torch.randint(0, VOCABULARY, (BATCH, TOKENS), device=device)

    def step() -> None:
        torch.backends.cuda.matmul.allow_tf32 = tf32
        with turns.marked("forward"), torch.autocast(device, torch.bfloat16, enabled=bf16):
            loss = called(tokens, targets)
        with turns.marked("backward"):
            loss.backward()
        with turns.marked("optimizer"):
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    return turns.captured(step) if graph else step


variant = partial(turns.variant, build)

VARIANTS = {
    "base": variant(),
    "fused_optimizer": variant(fused=True),
    "foreach_optimizer": variant(foreach=True),
    "tf32": variant(tf32=True),
    "bf16": variant(bf16=True),
    "padded": variant(vocabulary=PADDED),
    "fused_attention": variant(attention=True),
    "compiled": variant(inductor=True),
    "tf32_padded": variant(tf32=True, vocabulary=PADDED),
    "all": variant(inductor=True, tf32=True, fused=True, attention=True, vocabulary=PADDED),
    "graph": variant(graph=True),
}

if __name__ == "__main__":
    turns.main("train", VARIANTS)
