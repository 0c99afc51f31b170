"""The search for tile parameters: what it proposes, what it keeps, and a worker that dies."""

from __future__ import annotations

import json
import random
import sys

import pytest

from gemmprof.cli import main
from gemmprof.errors import ProfilerError
from gemmprof.kernels.catalog import HALF, TUNING_VALUES, all_variants, stage_variants
from gemmprof.profiler.tuning.client import TuningClient
from gemmprof.profiler.tuning.search import Journal, Outcome, distance, identity, propose, search_space

VARIANTS = {variant.name: variant for variant in all_variants()}


@pytest.mark.parametrize("name", VARIANTS)
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
    first = Outcome({"BM": 64}, "timed", 0.5, registers=100, blocks_per_sm=2)
    journal.add(first)
    with journal.path.open("a") as file:
        file.write('{"parameters": {"BM": 12')
    assert Journal(journal.path).read() == [first]
    second = Outcome({"BM": 128}, "wrong", detail="4096³: C holds NaN")
    journal.add(second)
    assert journal.read() == [first, second]


def worker(tmp_path, body):
    """A worker process whose answers to candidates are the body's doing."""
    script = tmp_path / "worker.py"
    script.write_text(
        "import json, os, sys, time\n"
        "settings = json.loads(sys.stdin.readline())\n"
        'print(json.dumps({"device": "GPU", "architecture": "9.0"}), flush=True)\n'
        "for line in sys.stdin:\n"
        "    request = json.loads(line)\n" + "".join(f"    {line}\n" for line in body.splitlines())
    )
    return TuningClient({}, (sys.executable, str(script)))


def test_worker_that_dies_is_an_answer_and_is_replaced(tmp_path):
    body = (
        'if request["library"] == "bad":\n    print("illegal address", file=sys.stderr, flush=True)\n    os.abort()\n'
        'print(json.dumps({"status": "timed", "score": 0.5}), flush=True)'
    )
    with worker(tmp_path, body) as client:
        assert (client.device, client.architecture) == ("GPU", "9.0")
        assert client.measure({"library": "good"}) == {"status": "timed", "score": 0.5}
        assert client.measure({"library": "bad"}) == {"status": "crashed", "detail": "illegal address"}
        assert client.measure({"library": "good"})["status"] == "timed"


def test_worker_that_hangs_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr("gemmprof.profiler.tuning.client.CANDIDATE_SECONDS", 0.3)
    with worker(tmp_path, "time.sleep(60)") as client:
        answer = client.measure({})
        assert answer["status"] == "crashed"
        assert "did not answer within 0.3 s" in answer["detail"]


def test_failed_launch_starts_a_fresh_worker(tmp_path):
    body = 'print(json.dumps({"status": "failed", "detail": str(os.getpid())}), flush=True)'
    with worker(tmp_path, body) as client:
        assert client.measure({})["detail"] != client.measure({})["detail"]


def test_no_gpu():
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    settings = {"problems": [[8, 8, 8]], "seed": 0, "minimum_warps": 4, "early_factor": 1.2}
    with pytest.raises(ProfilerError, match="cannot use a GPU"), TuningClient(settings):
        pass


@pytest.mark.parametrize("stage", [stage for stage in HALF.stages if stage.number >= 3], ids=lambda s: s.name)
def test_stages_of_the_16_bit_ladder_are_tuned_by_name_alone(stage, capsys):
    assert main(["tune", "--stage", stage.name, "--constraints", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["stage"] == stage.name and answer["constraints"]
    space = search_space(stage_variants(stage)[0])
    assert answer["parameter_sets"] == len(space) >= 10
    assert dict(stage.parameters) in space


def test_a_number_alone_means_the_first_ladder(capsys):
    assert main(["tune", "--stage", "5", "--constraints", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["stage"] == "block2d"
