"""A child that plays a GPU: answers as the real ones do, the same for the same request, and fails where it is told to.

``$FAKE_GPU_PLAN`` names a folder. A file ``<UUID>`` in it holds what that GPU does: ``absent`` (no start), ``gone``
(dies at the next request and does not start again), ``hang``, ``slow`` (a second for each request); ``die`` and
``die-<stage>`` (dies once at any request, always at that stage). It writes the requests that it answered to
``<UUID>.log``.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

from gemmprof.children.line_worker import serve

PLAN = Path(os.environ["FAKE_GPU_PLAN"])
NAME = os.environ.get("CUDA_VISIBLE_DEVICES", "GPU-0")
SECONDS = float(os.environ.get("FAKE_GPU_SECONDS", "0.01"))
started = False


def plan() -> str:
    try:
        return (PLAN / NAME).read_text().strip()
    except FileNotFoundError:
        return ""


def number(request: dict[str, Any]) -> float:
    """Between 0 and 1, the same for the same request wherever it is answered."""
    told = {key: value for key, value in request.items() if key not in ("library", "best")}
    if "library" in request:
        told["library"] = hashlib.sha256(Path(request["library"]).read_bytes()).hexdigest()
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).digest()
    return int.from_bytes(digest[:4], "big") / 2**32


def answer(request: dict[str, Any]) -> dict[str, Any]:
    global started
    doing = plan()
    if not started:
        if doing in ("absent", "gone"):
            return {"status": "failed", "detail": "no CUDA-capable device is detected"}
        started = True
        return {"device": "NVIDIA Fake", "architecture": "9.0"}
    time.sleep(SECONDS)
    if doing == "die":
        (PLAN / NAME).write_text("")
        os._exit(9)
    if doing == "gone" or doing == f"die-{request.get('stage')}":
        os._exit(9)
    if doing == "slow":
        time.sleep(1.0)
    if doing == "hang":
        (PLAN / NAME).write_text("")
        time.sleep(600)
    with (PLAN / f"{NAME}.log").open("a") as file:
        file.write(json.dumps(request) + "\n")
    value = number(request)
    if request.get("part") == "verify":
        return {
            "status": "verified",
            "verification": {"relative_error": value / 1e6, "tolerance": 1e-5, "passed": True},
        }
    if request.get("part") == "time":
        seconds = dict.fromkeys(("median", "minimum", "p10", "p90"), 1e-3 + value / 1e3)
        return {"status": "timed", "timing": {**seconds, "yardstick_median": 1e-3, "repetitions": 5}}
    return {"status": "timed", "score": value, "registers": 64, "blocks_per_sm": 2}


if __name__ == "__main__":
    serve(answer)
