"""The same on GPUs, where there are any (gpu_checks.py)."""

import pytest
import torch

import gpu_checks
import megatron_checks

GPUS = torch.cuda.device_count()
needs_one = pytest.mark.skipif(GPUS < 1, reason="needs a GPU")
needs_two = pytest.mark.skipif(GPUS < 2, reason="needs two GPUs: NCCL wants one for every rank")


@needs_one
@pytest.mark.parametrize("name", gpu_checks.CHECKS)
def test_between_processes(name):
    gpu_checks.check(name)


@needs_two
@pytest.mark.parametrize("name", gpu_checks.HOST_CHECKS)
def test_over_nccl(name):
    gpu_checks.check(name)


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=needs_one if name == "failures" else needs_two)
    for name in gpu_checks.FAILURES])
def test_failures_reach_every_rank(name):
    gpu_checks.check_failures(**gpu_checks.FAILURES[name])


@pytest.mark.skipif(bool(megatron_checks.why_not()), reason=megatron_checks.why_not())
@pytest.mark.parametrize("name", [
    *megatron_checks.CHECKS,
    *(pytest.param(name, marks=needs_two) for name in megatron_checks.NCCL_CHECKS)])
def test_beside_expert_parallelism(name):
    megatron_checks.check(name)
