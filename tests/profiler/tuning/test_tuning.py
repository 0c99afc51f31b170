"""The search for tile parameters: what it proposes, and what it keeps."""

from __future__ import annotations

import hashlib
import io
import json
import random
import re
from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from rich.console import Console
from scale import few

from gemmprof.base.progress import Progress
from gemmprof.cli import main
from gemmprof.gpu.devices import KernelResources
from gemmprof.kernels.catalog import FP8, HALF, TUNING_VALUES, all_variants, stage_variants
from gemmprof.model import Card, Problem
from gemmprof.model.answers import Outcome, Search
from gemmprof.profiler import site
from gemmprof.profiler import tuning as searching
from gemmprof.profiler.site import Answer
from gemmprof.profiler.tuning import Journal, distance, identity, propose, search_space, tune
from gemmprof.reports.terminal.summary import print_search

VARIANTS = {variant.name: variant for variant in all_variants()}


@pytest.mark.parametrize("name", few(VARIANTS, [*VARIANTS][1::4]))
def test_search_space_holds_the_catalogs_letters(name):
    space = search_space(VARIANTS[name])
    assert space
    assert all(set(parameters) == set(VARIANTS[name].parameters) for parameters in space)
    assert len({identity(parameters) for parameters in space}) == len(space)


def test_proposals_are_new_and_different():
    space = search_space(VARIANTS["block2d"])
    rng = random.Random(0)
    outcomes = [Outcome(parameters, "slow") for parameters in space[: len(space) // 2]]
    chosen = propose(space, outcomes, space[-100:], 50, rng)
    keys = {identity(parameters) for parameters in chosen}
    assert len(keys) == 50
    assert not keys & {identity(outcome.parameters) for outcome in outcomes}
    assert not keys & {identity(parameters) for parameters in space[-100:]}


def test_half_of_the_proposals_are_near_the_best():
    space = search_space(VARIANTS["block2d"])
    best = VARIANTS["block2d"].parameters
    outcomes = [Outcome(best, "timed", 0.8)]
    chosen = propose(space, outcomes, [], 10, random.Random(0))
    nearest = sorted(distance(p, best) for p in space if identity(p) != identity(best))[:5]
    assert sorted(distance(p, best) for p in chosen)[:5] == nearest
    assert max(distance(p, best) for p in chosen) > 2 * max(nearest)


def test_the_end_of_the_space():
    space = search_space(VARIANTS["shared"])
    outcomes = [Outcome(parameters, "timed", 0.1) for parameters in space]
    assert propose(space, outcomes, [], 5, random.Random(0)) == []


def test_distance_counts_letters_and_steps():
    a = {"BM": 64, "BN": 64}
    assert distance(a, a) == 0
    assert distance(a, {"BM": 96, "BN": 64}) == 2
    assert distance(a, {"BM": 128, "BN": 96}) == 5
    assert distance(a, {"BM": 65, "BN": 64}) == 2
    assert 65 not in TUNING_VALUES["BM"]


def test_journal_survives_a_cut_line(tmp_path):
    journal = Journal(tmp_path / "tuning" / "stage.jsonl")
    assert journal.read() == []
    first = Outcome(
        {"BM": 64}, "timed", 0.5, registers=100, blocks_per_sm=2, card=Card("H200", 1, "GPU-1", "a")
    )
    journal.add(first)
    with journal.path.open("a") as file:
        file.write('{"parameters": {"BM": 12')
    assert Journal(journal.path).read() == [first]
    second = Outcome({"BM": 128}, "wrong", detail="4096³: C holds NaN")
    journal.add(second)
    assert journal.read() == [first, second]


@pytest.fixture
def searched(tmp_path, monkeypatch, plan, gpus):
    """``searched(name, "0,1")`` searches a stage with compilers and GPUs that are played."""

    def compiled(variant, architecture):
        text = json.dumps([variant.name, architecture, identity(variant.parameters)])
        library = tmp_path / "candidates" / hashlib.sha256(text.encode()).hexdigest()
        library.parent.mkdir(exist_ok=True)
        library.write_text(text)
        return SimpleNamespace(library=library, kernels=(KERNEL,))

    def start(name, chosen, limit=1000, cache="cache"):
        monkeypatch.setenv("GEMMPROF_CACHE", str(tmp_path / cache))
        monkeypatch.setattr(site, "compile_candidate", compiled)
        monkeypatch.setattr(site, "require_nvcc", lambda: SimpleNamespace(banner="nvcc"))
        monkeypatch.setattr(site, "list_gpus", lambda: gpus)
        monkeypatch.setattr(searching, "MODULE", "fake_gpu")
        search = Search(VARIANTS[name], (Problem(64, 64, 64),), limit=limit, jobs=2)
        return tune(search, Progress(), site.Here(chosen))

    return start


KERNEL = KernelResources("k", "sm_90", 64)


def test_two_gpus_find_the_winner_that_one_finds(searched, cards, monkeypatch) -> None:
    monkeypatch.setenv("FAKE_GPU_SECONDS", "0.001")
    alone = searched("hgemm_mma", "", cache="one")
    both = searched("hgemm_mma", "0,1", cache="two")
    size = len(search_space(VARIANTS["hgemm_mma"]))
    assert (alone.tried, both.tried) == (size, size)
    assert {identity(o.parameters): o.score for o in alone.outcomes} == {
        identity(o.parameters): o.score for o in both.outcomes
    }
    assert (both.winner, both.best, both.default) == (alone.winner, alone.best, alone.default)
    assert {o.card for o in alone.outcomes} == {cards[0]} and {o.card for o in both.outcomes} == set(
        cards[:2]
    )
    assert set(both.cards) == set(cards[:2])
    print_search(Console(file=(shown := io.StringIO()), width=200), both)
    text, words = shown.getvalue(), [f"{letter}={value}" for letter, value in both.winner.items()]
    assert f"winner: {' '.join(words)}: {100 * both.best:.1f}% of cuBLAS, {both.gain:.3f} times" in text
    shares = [float(row) for row in re.findall(r"^BM=.* (\S+) +64 +2 *$", text, re.MULTILINE)]
    assert len(shares) == min(size, 10) and shares == sorted(shares, reverse=True)
    assert f"tried: {size} timed" in text and "measured: " in text


def test_a_gpu_that_goes_costs_no_candidate_and_a_search_goes_on_where_it_was(searched, plan, cards) -> None:
    plan.tell(1, "die")
    first = searched("block2d", "0,1", limit=40)
    assert first.tried == 40 and {o.status for o in first.outcomes} == {"timed"}
    plan.tell(0, "gone")
    second = searched("block2d", "all", limit=30)
    assert (second.tried, len(second.outcomes)) == (30, 70)
    assert len({identity(o.parameters) for o in second.outcomes}) == 70
    assert set(second.cards) == set(cards[1:])


@pytest.mark.parametrize("stage", [*HALF.stages[3:], *FP8.stages[1:]], ids=lambda s: s.name)
def test_stages_of_16_and_8_bits_are_tuned_by_name_alone(stage, capsys):
    assert main(["tune", "--stage", stage.name, "--constraints", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["stage"] == stage.name and answer["constraints"]
    space = search_space(stage_variants(stage)[0])
    assert answer["parameter_sets"] == len(space) >= 10
    assert dict(stage.parameters) in space


def test_a_number_alone_means_the_first_ladder(capsys):
    assert main(["tune", "--stage", "5", "--constraints", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["stage"] == "block2d"


@pytest.mark.parametrize("trouble", ["wrong", "failed", "crashed"])
def test_a_finalist_that_is_wrong_once_does_not_win(trouble: str, cards) -> None:
    """The fastest of all races: two of its three rounds are right."""
    variant = VARIANTS["block2d"]
    default = dict(variant.parameters)
    racing, sound = ({**default, "TM": value} for value in (1, 2))
    speed = {identity(default): [0.5, 0.7, 0.6], identity(sound): [0.8] * 3, identity(racing): [0.9] * 3}
    asked: dict[object, int] = {}

    def submit(request) -> Future[Answer]:
        key, answer = request.candidate, Future()
        asked[key] = asked.get(key, 0) + 1
        record = {"status": "timed", "score": speed[key][asked[key] - 1]}
        if key == identity(racing) and asked[key] == 2:
            record = {"status": trouble, "detail": "4096³: C holds NaN"}
        answer.set_result(Answer(record, cards[0]))
        return answer

    def compiled(made, _) -> Future[object]:
        future: Future[object] = Future()
        future.set_result(identity(made.parameters))
        return future

    made = searching.Searching(
        Search(variant, (Problem(64, 64, 64),)),
        SimpleNamespace(facts={"device": "a GPU", "architecture": "9.0"}, width=1, submit=submit),  # type: ignore[arg-type]
        SimpleNamespace(banner="nvcc", submit=compiled),  # type: ignore[arg-type]
        Progress(),
    )
    made._outcomes += [
        Outcome(racing, "timed", 0.9),
        Outcome(sound, "timed", 0.8),
        Outcome(default, "timed", 0.6),
    ]
    scores = made._finals()
    assert scores == {identity(default): 0.6, identity(sound): 0.8}


@pytest.mark.parametrize(("spilled", "status"), [(0, "timed"), (128, "timed"), (129, "spills")])
def test_a_few_words_may_spill(spilled: int, status: str, searched, monkeypatch) -> None:
    kernel = KernelResources(
        "k", "sm_90", 64, spill_store_bytes=spilled // 2, spill_load_bytes=-(-spilled // 2)
    )
    monkeypatch.setitem(globals(), "KERNEL", kernel)
    assert {outcome.status for outcome in searched("block2d", "", limit=2).outcomes} == {status}
