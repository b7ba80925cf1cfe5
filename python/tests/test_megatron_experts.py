"""Megatron-Core's expert parallelism beside Libra's exchange, on CPUs (experts.py)."""

import pytest
import torch

import libra
from pools import TOLERANCE, deviation
from worlds import World

pytest.importorskip("megatron.core", reason="needs megatron-core")

import megatron_checks  # noqa: E402
from experts import RANKS, Job, TorchAttention, train  # noqa: E402
from libra.integrations import megatron as adapter  # noqa: E402
from without_gpu import without_a_gpu  # noqa: E402

SAMPLES = [  # [microbatch][replica]
    [[64], [8] * 8],
    [[1, 0, 30, 7], [62]],
    [[16, 48], [5] * 12],
]


@pytest.fixture(name="world", scope="module")
def two_ranks():
    world = World(RANKS)
    yield world
    world.close()


def trained(recompute):
    """Losses and gradients with every tile at home, with balance, and without Libra."""
    job = Job(SAMPLES, torch.device("cpu"), torch.float64, recompute=recompute, stagger=2e-3)
    with without_a_gpu():
        pool = libra.Pool()
        outcomes = [train(job, pool, *kind) for kind in (
            ("none", adapter.CoreAttention), ("balanced", adapter.CoreAttention),
            ("none", TorchAttention))]
        pool.close()
    return outcomes


@pytest.mark.parametrize("recompute", [False, True])
def test_balance_changes_neither_losses_nor_gradients(world, recompute):
    for (losses, gradients), *others in world.run(trained, recompute):
        assert losses[-1].mean() < losses[0].mean()
        for other_losses, other_gradients in others:
            assert deviation(losses, other_losses) < TOLERANCE
            for mine, other in zip(sum(gradients, []), sum(other_gradients, [])):
                assert deviation(mine, other) < TOLERANCE


def judged():
    """The GPUs' job at a sixteenth of its tokens: enough for a mean over routes that rounding
    changes."""
    samples = [[[n // 16 for n in of_replica] for of_replica in of_replicas]
               for of_replicas in megatron_checks.SAMPLES]
    job = Job(samples, torch.device("cpu"), torch.bfloat16, tokens=256, hidden=64, head_dim=16)
    with without_a_gpu():
        pool = libra.Pool()
        said = megatron_checks.judge(job, pool)
        pool.close()
    return said


def test_bf16_is_as_near_to_fp32_as_torchs_own(world):
    world.run(judged)
