"""embedding_row_each, side flawed: more rows a program or fewer warps where a row has fewer vectors than threads."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
from tried import DEVICE, Form, empty, judge, kernels, noise, small

embedding = kernels("variants/frameworks").embedding_kernel
tokens, columns, words = small(1 << 20, 64), 64, small(100_000, 100)
ids = torch.randint(0, words, (tokens,), device=DEVICE, dtype=torch.int32)
table, out = noise(words, columns), empty(tokens, columns)


def side(rows: int, warps: int) -> Form:
    return lambda: embedding[(tokens // rows,)](ids, table, out, rows, columns, num_warps=warps)


judge({"as_it_is": side(1, 4), "eight_rows": side(8, 4), "one_warp": side(1, 1)}, [out])
