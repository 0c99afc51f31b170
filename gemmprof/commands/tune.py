"""Search the tile parameters of a stage on this machine's GPU and keep the fastest for `gemmprof collect`.

  gemmprof tune --stage 9 --limit 200           search, then keep the fastest
  gemmprof tune --stage 9 --constraints         what parameters must satisfy

Only parameter sets that satisfy the stage's own constraints are tried (--constraints lists them). They are compiled in
parallel, dropped early if they spill, leave an SM too few warps or are far behind, verified, then timed against cuBLAS.
Every outcome is kept at once: a search that was interrupted goes on from there. Exits with 1 if nothing beat the
catalog's parameters.
"""

from __future__ import annotations

import argparse
import os

from gemmprof.arguments import ladder_options
from gemmprof.arguments.common import announce, answer, console, print_json
from gemmprof.arguments.ladder_options import DEFAULT_SHAPE, asked_problems, chosen_ladder, on_site
from gemmprof.arguments.parser import JSON, values, whole
from gemmprof.base.errors import UsageError
from gemmprof.kernels.catalog import stage_variants
from gemmprof.model.ladder import Variant

DEFAULT_LIMIT = 150
ARGUMENTS = f"""
--stage STAGE           a stage by number or name (9, warptiled)
{ladder_options.TYPES}
--shape MxNxK…          problem to be fast on (default {DEFAULT_SHAPE}); may be repeated: the geometric mean counts
--limit N>=0            parameter sets to try beyond those tried before (default {DEFAULT_LIMIT})
--jobs N>=0             compilers at a time (default: cores)
--seed                  seed of the search and of the operands (default 0)
--constraints           only list what the stage asks of its parameters, and how many fit
--reset                 only forget the stage's winner on this machine
{ladder_options.PLACE}{JSON}"""
VALUES = values(
    ladder_options.TYPE_VALUES,
    ladder_options.PLACE_VALUES,
    stage={"required": True},
    limit=DEFAULT_LIMIT,
    jobs=os.cpu_count() or 1,
    seed={"type": whole(0), "default": 0},
)


def run(options: argparse.Namespace) -> int:
    """Search, print the best, and say where the winner is kept."""
    from gemmprof.profiler.settings import select_stages

    ladder = chosen_ladder(options)
    stages = select_stages([options.stage], ladder)
    if len(stages) != 1 or not stage_variants(stages[0]):
        none = f"'{options.stage}' is not one stage with parameters"
        raise UsageError(none, "`gemmprof stages` lists the parameters")
    variant = stage_variants(stages[0])[0]
    if options.constraints:
        return _list_constraints(options, variant)
    if options.reset:
        from gemmprof.base.system import cache_directory
        from gemmprof.kernels.parameters import forget_tuned

        had = forget_tuned(cache_directory(), variant.name)
        gone = "the winner is forgotten, the catalog counts again"
        console().print(f"{variant.name}: {gone if had else 'there was no winner'}")
        return 0
    from gemmprof.model.answers import Search
    from gemmprof.profiler.tuning import tune
    from gemmprof.reports.terminal.summary import print_search

    problems = asked_problems(options, ladder.dtypes[:1])
    search = Search(variant, problems, limit=options.limit, jobs=max(1, options.jobs), seed=options.seed)
    # What was searched before the scheduler went away is kept, and found by the search that begins anew.
    result = on_site(options, lambda site, progress, _: tune(search, progress, site))
    if options.json:
        print_json(result)
    else:
        print_search(console(), result)
    if result.kept is not None:
        announce(result.kept)
    return 0 if result.kept is not None else 1


def _list_constraints(options: argparse.Namespace, variant: Variant) -> int:
    from gemmprof.kernels.compiler import SOURCES
    from gemmprof.kernels.parameters import read_constraints
    from gemmprof.model.answers import TuneConstraintsDocument
    from gemmprof.profiler.tuning import search_space

    sentences = read_constraints(SOURCES / variant.source).sentences
    space = search_space(variant)
    lines = [*(f"- {sentence}" for sentence in sentences), f"{len(space)} parameter sets satisfy them."]
    answer(
        options, lambda: TuneConstraintsDocument(variant.name, tuple(sentences), len(space)), lambda _: lines
    )
    return 0
