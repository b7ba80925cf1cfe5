"""The same on two GPUs, where there are two (gpu_checks.py)."""

import pytest
import torch

import gpu_checks

pytestmark = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")


@pytest.mark.parametrize("name", [*gpu_checks.CHECKS, *gpu_checks.HOST_CHECKS])
def test_on_two_gpus(name):
    gpu_checks.check(name)


@pytest.mark.parametrize("name", gpu_checks.FAILURES)
def test_failures_reach_every_gpu(name):
    gpu_checks.check_failures(**gpu_checks.FAILURES[name])
