"""One training step of a small transformer in torch, with NVTX ranges around its parts."""

import torch
from torch import nn

torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.1, batch_first=True, norm_first=True)
model = nn.Sequential(nn.TransformerEncoder(layer, 4), nn.Linear(512, 1000)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
x = torch.randn(16, 512, 512, device="cuda")
target = torch.randint(0, 1000, (16 * 512,), device="cuda")

with torch.cuda.nvtx.range("forward"), torch.autocast("cuda", torch.bfloat16):
    loss = nn.functional.cross_entropy(model(x).flatten(0, 1), target)
with torch.cuda.nvtx.range("backward"):
    loss.backward()
with torch.cuda.nvtx.range("optimizer"):
    optimizer.step()
    optimizer.zero_grad()
print(float(loss))
