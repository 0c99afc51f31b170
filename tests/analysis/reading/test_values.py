"""Metrics that are taken apart together are what protobuf says one by one, to the last bit, whatever the bytes are."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from google.protobuf.message import DecodeError
from reports_in_bytes import content_of
from scale import few, inputs

from gemmprof.analysis.reading.values import MetricDecoder, _plain_metrics, metric_value
from gemmprof.model import MetricValue
from gemmprof.ncurep import ncu_frame
from gemmprof.ncurep import ncu_messages_pb2 as messages
from gemmprof.ncurep.ncu_frame import WireError

NAMES = [f"metric_{number}" for number in range(100_000)]
VALUES = [
    messages.Value(real=0.1),
    messages.Value(real=float("-inf")),
    messages.Value(single=0.1),
    *(messages.Value(whole=1 << bits) for bits in range(64)),
    *(messages.Value(small=(1 << bits) - 1) for bits in range(65)),
    *(messages.Value(text="ü" * length) for length in (0, 1, 61, 62, 63, 64, 3000)),
    messages.Value(),
]
DECODER = MetricDecoder(NAMES)
LAST = b"\x20\x00"  # how ncu ends each metric


def one_by_one(data: bytes) -> tuple[str, MetricValue | None] | None:
    """Name and value of a metric without values by instruction; None for what is none."""
    try:
        found = messages.Metric.FromString(data)
    except DecodeError:
        return None
    if not found.HasField("name") or found.name >= len(NAMES):
        return None
    of_times = found.keyed_by == 1  # the sum over samples: of no launch
    return NAMES[found.name], None if of_times else metric_value(found.value)


def check(metrics: list[bytes]) -> int:
    """Compare each, all decoded together; returns how many were taken apart without protobuf."""
    for data, number, value, known in zip(metrics, *_plain_metrics(metrics), strict=True):
        if known and number < len(NAMES):
            expected = one_by_one(data)
            assert expected is not None, data
            assert (NAMES[number], type(value), repr(value)) == (
                expected[0],
                type(expected[1]),
                repr(expected[1]),
            ), data
    for data in metrics:
        expected = one_by_one(data)
        try:
            ((scalars, instances, _),) = DECODER.decode([[data]])
        except WireError:
            continue  # of values by instruction more is asked than that they can be decoded
        assert expected is not None, data
        if not instances:
            assert repr(scalars) == repr({expected[0]: expected[1]} if expected[1] is not None else {}), data
    return sum(_plain_metrics(metrics)[2])


def test_values_of_every_kind_and_size() -> None:
    metrics = [
        messages.Metric(name=name, value=value).SerializeToString() + last
        for name in (0, 127, 128, 16383, 16384, 99_999)
        for value in VALUES
        for last in (b"", LAST, LAST + LAST)
    ]
    # All but those with a second last field, whole numbers of ten bytes, long texts, and nothing at all.
    assert check(metrics) == 6 * 2 * (len(VALUES) - 6)


@pytest.mark.parametrize("name", few(["names_nvtx", "ladder_simple"], ["names_nvtx"]))
def test_recorded_metrics_and_changed_ones(name: str) -> None:
    dice = random.Random(name)
    metrics = [*recorded(name)]
    assert check(metrics) > 0.85 * len(metrics)
    for _ in range(inputs(300, 20_000) // 100):
        changed = []
        for data in dice.sample([data for data in metrics if len(data) < 100], 100):
            mutant = bytearray(data)
            for _ in range(dice.choice((1, 1, 2))):
                mutant[dice.randrange(len(mutant))] = dice.choice((0, 1, 127, 128, 255, dice.randrange(256)))
            changed.append(bytes(mutant[: dice.choice((len(mutant), dice.randrange(1, len(mutant) + 1)))]))
        check(changed)


def recorded(name: str) -> Iterator[bytes]:
    """The metrics of the launches of a recorded report."""
    content = content_of(name)

    def read(start: int, end: int) -> bytes:
        return content[start:end]

    for block in ncu_frame.blocks(read, ncu_frame.read_head(read, len(content))[1], len(content)):
        for item in ncu_frame.items(read, block, len(content)):
            if item.kind == "kernel":
                yield from messages.KernelResult.FromString(content[item.start : item.end]).metrics
