"""How much faster is a search with more GPUs? The same candidates, compiled before, with one GPU and with all.

    python tools/bench_gpus.py --stage block2d --every 4 --gpus 0 --gpus 0,1

Prints one JSON object a run: candidates a minute of the search alone and with start and finals, and the winner with the
scores of the finals.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shutil
import time
from concurrent.futures import ThreadPoolExecutor

from gemmprof.base.progress import SILENT
from gemmprof.base.system import cache_directory
from gemmprof.kernels.catalog import LADDERS, stage_variants
from gemmprof.kernels.compiler import compile_candidate, present_architectures
from gemmprof.model import Problem
from gemmprof.model.answers import Search
from gemmprof.profiler import tuning as searching
from gemmprof.profiler.site import Here
from gemmprof.profiler.tuning import search_space


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stage", required=True)
    parser.add_argument("--shape", default="4096")
    parser.add_argument("--every", type=int, default=1, help="take every so-manieth parameter set")
    parser.add_argument("--gpus", action="append", required=True)
    parser.add_argument("--jobs", type=int, default=0)
    options = parser.parse_args()
    ladder = next(ladder for ladder in LADDERS for stage in ladder.stages if stage.name == options.stage)
    stage = next(stage for stage in ladder.stages if stage.name == options.stage)
    variant = stage_variants(stage)[0]
    space = search_space(variant)
    default = dict(variant.parameters)
    chosen = tuple({**dict(p)} for p in space[:: options.every])
    chosen = chosen if default in chosen else (*chosen, default)
    architecture = present_architectures()[0]
    started = time.perf_counter()
    with ThreadPoolExecutor(options.jobs or None) as pool:
        variants = [dataclasses.replace(variant, parameters=parameters) for parameters in chosen]
        list(pool.map(lambda v: _compiled(v, architecture), variants))
    print(
        json.dumps({"candidates": len(chosen), "compiled in": round(time.perf_counter() - started, 1)}),
        flush=True,
    )
    searching.search_space = lambda _: chosen  # type: ignore[assignment]
    problem = Problem.parse(options.shape, ladder.dtypes[0])
    for gpus in options.gpus:
        shutil.rmtree(cache_directory() / "tuning", ignore_errors=True)
        started = time.perf_counter()
        result = searching.tune(
            Search(variant, (problem,), limit=len(chosen), jobs=options.jobs), SILENT, Here(gpus)
        )
        whole = time.perf_counter() - started
        record = {
            "stage": options.stage,
            "gpus": gpus,
            "tried": result.tried,
            "search seconds": round(result.search_seconds, 2),
            "a minute": round(60 * result.tried / result.search_seconds, 1),
            "a minute with start and finals": round(60 * result.tried / whole, 1),
            "winner": dict(result.winner),
            "best": round(result.best, 4),
            "default": round(result.default, 4),
            "statuses": {
                o.status: sum(p.status == o.status for p in result.outcomes) for o in result.outcomes
            },
            "a card": {c.index: sum(o.card == c for o in result.outcomes) for c in result.cards},
        }
        print(json.dumps(record), flush=True)


def _compiled(variant: object, architecture: str) -> None:
    from gemmprof.base.errors import BuildError

    try:
        compile_candidate(variant, architecture)  # type: ignore[arg-type]
    except BuildError:
        return  # the search will say so


if __name__ == "__main__":
    main()
