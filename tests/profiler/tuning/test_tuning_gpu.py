"""A short search on the GPU, killed and continued."""

from __future__ import annotations

import pytest
from late import needs_torch, torch

from gemmprof.base.progress import Progress
from gemmprof.kernels.build import tuned_parameters
from gemmprof.kernels.catalog import stage_by_number, stage_variants
from gemmprof.model import Problem
from gemmprof.model.answers import Search
from gemmprof.profiler.tuning import identity, tune

pytestmark = [pytest.mark.gpu, needs_torch]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    if not torch.cuda.is_available():
        pytest.skip("no GPU that torch can use")
    monkeypatch.setenv("GEMMPROF_CACHE", str(tmp_path))
    return tmp_path


@pytest.mark.long(seconds=25)
def test_search_and_continue(cache):
    variant = stage_variants(stage_by_number(9))[0]
    search = Search(variant, (Problem(512, 512, 512), Problem(300, 200, 100)), limit=6)
    first = tune(search, Progress())
    assert first.tried == 6
    assert identity(variant.parameters) in {identity(outcome.parameters) for outcome in first.outcomes}
    assert first.best >= first.default > 0

    # What a kill in the middle of a line leaves behind.
    (journal,) = (cache / "tuning").glob("autotuned-*.jsonl")
    text = journal.read_text()
    journal.write_text(text[: len(text) - 20])
    second = tune(search, Progress())
    assert len(second.outcomes) == 5 + 6
    assert len({identity(outcome.parameters) for outcome in second.outcomes}) == 11
    assert second.gain >= 1.0

    number = "{}{}".format(*torch.cuda.get_device_capability())
    if second.kept is not None:
        assert tuned_parameters(cache, [number])["autotuned"] == second.winner
