"""The fused and the plain way of one expression, each marked as a region to profile."""

import torch

import gemmprof

x = torch.randn(64, 1024, 1024, device="cuda")


def plain(x):
    return torch.nn.functional.gelu(x) * 0.5 + x


with gemmprof.profile() as eager:
    plain(x)

for finding in eager.report.findings[:3]:
    print(f"{finding.family.label}: {finding.finding.cause} {finding.finding.saves:.0%}")
print(eager.report.to_dataframe()[["kernel", "duration_ns", "dram_percent"]])
