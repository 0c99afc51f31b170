"""What an analysis makes of a launch, and which metrics it asks for: found by letting it, since nothing lists them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gemmprof.analysis.kernel_analysis import result_of
from gemmprof.model import KernelProfile


class _Asked(dict[str, Any]):
    """Values that note which of them were asked for by name."""

    def __init__(self, values: dict[str, Any], names: set[str]) -> None:
        super().__init__(values)
        self.names = names

    def __getitem__(self, name: str) -> Any:
        self.names.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.names.add(name)
        return super().get(name, default)

    def __contains__(self, name: object) -> bool:
        self.names.add(str(name))
        return super().__contains__(name)


def metrics_read(module: Any, profile: KernelProfile) -> set[str]:
    """The metrics of this launch that the analysis looks at, and those of its group."""
    names = {*module.GROUP.required, *module.GROUP.expected}
    metrics, instances = (_Asked(dict(values), names) for values in (profile.metrics, profile.instances))
    module.analyse(replace(profile, metrics=metrics, instances=instances))
    return names & {*profile.metrics, *profile.instances}


def analysed(module: Any, profile: KernelProfile) -> Any:
    """The result of an analysis of a launch that holds what it reads."""
    result = module.analyse(profile)
    assert isinstance(result, result_of(module))
    return result
