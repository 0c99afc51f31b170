"""Two ranks, a GPU each: a product, a reduction and an all-reduce a step. BACKEND=gloo needs one GPU only."""

import os

import torch
import torch.distributed as dist

backend = os.environ.get("BACKEND", "nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
dist.init_process_group(backend)
a = torch.randn(2048, 2048, device="cuda")
b = torch.randn(2048, 2048, device="cuda")
for _ in range(3):
    c = torch.relu(a @ b)
    g = c.sum(0) if backend == "nccl" else c.sum(0).cpu()
    dist.all_reduce(g)
    a = c * 1e-3
torch.cuda.synchronize()
dist.barrier()
dist.destroy_process_group()
