"""A small training loop (convolutions, then a transformer encoder) that launches many kinds of kernels.

The steps after a warm-up lie between cudaProfilerStart and cudaProfilerStop, each in NVTX ranges, so that
``ncu --profile-from-start off --nvtx`` sees them alone. Needs PyTorch and a GPU.

Usage: train_step.py STEPS
"""

from __future__ import annotations

import sys

import torch
from torch import nn


class Model(nn.Module):
    """Images of 3x32x32 pixels → convolutions → 64 tokens of 128 features → encoder → 10 classes."""

    def __init__(self) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(3, 64, 3, padding=1),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.Conv2d(64, 128, 4, stride=4),
            nn.BatchNorm2d(128),
            nn.GELU(),
        )
        layer = nn.TransformerEncoderLayer(128, 4, 256, dropout=0.1, batch_first=True, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.classifier = nn.Linear(128, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return the class scores [batch, 10] of ``images`` [batch, 3, 32, 32]."""
        features = self.convolutions(images)
        tokens = features.flatten(2).transpose(1, 2)
        scores: torch.Tensor = self.classifier(self.encoder(tokens).mean(dim=1))
        return scores


def main(steps: int) -> None:
    """Warm up, then train ``steps`` steps between profiler start and stop."""
    torch.manual_seed(1)
    model = Model().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    images = torch.randn(32, 3, 32, 32).cuda()
    labels = torch.randint(0, 10, (32,)).cuda()
    mark = torch.cuda.nvtx

    def step(name: str) -> None:
        with mark.range(name):
            with mark.range("forward"):
                loss = nn.functional.cross_entropy(model(images), labels)
            with mark.range("backward"):
                loss.backward()
            with mark.range("optimizer"):
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()

    step("warm-up")
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    for number in range(steps):
        step(f"step {number}")
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]))
