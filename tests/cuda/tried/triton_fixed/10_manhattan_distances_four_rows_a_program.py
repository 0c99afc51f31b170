"""manhattan_distances_four_rows_a_program, side wide: larger blocks, so that what is loaded serves more outputs."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tried import Form, empty, judge, kernels, noise, small

manhattan = kernels("blind14/b_frameworks").manhattan_kernel
rows, others, features = small(4096, 128), small(8192, 256), 48
x, y, out = noise(features, rows), noise(features, others) * 0.5, empty(rows, others)


def run(tall: int, wide: int, warps: int) -> Form:
    return lambda: manhattan[(others // wide, rows // tall)](
        x, y, out, features, others, tall, wide, num_warps=warps
    )


judge(
    {
        "as_it_is": run(32, 128, 4),
        "tiles_64x128": run(64, 128, 4),
        "tiles_128x128": run(128, 128, 8),
        "tiles_32x256": run(32, 256, 4),
    },
    [out],
)
