"""What goes wrong on one rank is an error on every rank, soon, in words that say what it was."""

import os
import signal
import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

import libra
from libra import _pool
from pools import Case, shard_of, skewed
from worlds import World

DEADLINE = 8.0  # seconds: passes that succeed take less, on a busy machine too
SOON = 30.0  # before the deadline of 60 seconds that pools have here, on a busy machine too


def attend(deadline, change=None, options=None, samples=None):
    """One forward and backward pass on every rank; rank 1 does what it should not."""
    odd = dist.get_rank() == 1
    pool = libra.Pool(deadline=deadline)
    case = Case(pool.workers, samples=skewed(pool.workers))
    if odd and samples:
        case.samples = [[samples] * pool.workers]
    plan = pool.plan(case.plan_options(**(options if odd and options else {})), case.sequences())
    shard = shard_of(case, plan)
    begin = time.monotonic()
    try:
        inputs = [t.requires_grad_() for t in (shard.q, shard.k, shard.v)]
        if odd and change:
            inputs = change(*inputs)
        out = libra.attention(*inputs, plan=plan)
        out.sum().backward()
        return "nothing was raised"
    except libra.Error as error:
        assert time.monotonic() - begin < SOON
        with pytest.raises(libra.Error):  # and so is every later use of this pool
            pool.plan(case.plan_options(), case.sequences()).pool.forward(plan, *inputs, 1.0)
        return f"{type(error).__name__}: {error}"
    finally:
        pool.close()


@pytest.mark.parametrize("difference", [
    dict(samples=[60, 60]),
    dict(options=dict(home="zigzag-row")),
    dict(options=dict(tau=0.5)),
    dict(options=dict(chunks=1)),
    dict(options=dict(backward="refetch")),
], ids=str)
def test_other_lengths_layouts_or_options_are_a_plan_error_on_every_rank(worlds, difference):
    for error in worlds(2).run(attend, 60.0, None, difference.get("options"),
                               difference.get("samples")):
        assert error.startswith("PlanError: worker ")
        assert "lengths, options and version must be the same on every rank of a pool" in error



def fingerprints_of_gpus():
    """Pools on GPUs compare them over torch.distributed."""
    pool = libra.Pool()
    pool._agree(2 ** 64 - 5)
    with pytest.raises(libra.PlanError) as raised:
        pool._agree(2 ** 63 + dist.get_rank())
    pool.close()
    return str(raised.value)


def test_other_fingerprints_of_gpus_are_the_same_error(worlds):
    words = "hold different plans: lengths, options and version must be the same on every rank"
    for rank, error in enumerate(worlds(2).run(fingerprints_of_gpus)):
        assert error.startswith(f"worker {rank} and worker {1 - rank} {words}")


def shorter(q, k, v):
    return q[:-1], k, v


def in_fp32(q, k, v):
    return q.float(), k.float(), v.float()


def of_other_heads(q, k, v):
    return q, k[:, :2], v[:, :2]


def as_if_on_another_device(q, k, v):
    for pool in list(_pool._open_pools):
        pool.device = torch.device("cuda")
    return q, k, v


@pytest.mark.parametrize("change, words", [
    (shorter, "Q is [119, 8, 16] fp64: the plan has [120, 8, 16] fp64 for this worker"),
    (in_fp32, "Q is [120, 8, 16] fp32: the plan has [120, 8, 16] fp64 for this worker"),
    (of_other_heads, "K is [120, 2, 16] fp64: the plan has [120, 4, 16] fp64 for this worker"),
    (as_if_on_another_device, "must be on cuda, where the pool's plans run: one is on cpu"),
])
def test_wrong_tensors_on_one_rank_are_an_error_on_every_rank_at_once(worlds, change, words):
    begin = time.monotonic()
    other, odd = worlds(2).run(attend, 60.0, change)
    assert odd.startswith("ConfigError: ") and words in odd
    assert other.startswith("TransportError: worker 0 ") and words in other
    assert "worker 1" in other
    assert time.monotonic() - begin < SOON


def stay_away():
    pool = libra.Pool(deadline=DEADLINE)
    case = Case(pool.workers, samples=skewed(pool.workers))
    plan = pool.plan(case.plan_options(), case.sequences())
    shard = shard_of(case, plan)
    inputs = (shard.q, shard.k, shard.v)
    libra.attention(*inputs, plan=plan)
    store = dist.distributed_c10d._get_default_store()
    if dist.get_rank() == 1:
        store.wait(["given up"], timedelta(seconds=SOON))
        return ""
    with pytest.raises(libra.TransportError) as raised:
        libra.attention(*inputs, plan=plan)
    store.set("given up", "")
    return str(raised.value)


def test_a_rank_that_does_not_come_is_named_at_the_deadline(worlds):
    error, _ = worlds(2).run(stay_away)
    assert "waited 8000 ms for worker 1 in step 2, forward dispatch" in error


def die_between_passes():
    pool = libra.Pool(deadline=60.0)
    case = Case(pool.workers, samples=skewed(pool.workers), options=dict(tau=0.0))
    plan = pool.plan(case.plan_options(), case.sequences())
    shard = shard_of(case, plan)
    inputs = (shard.q, shard.k, shard.v)
    libra.attention(*inputs, plan=plan)
    if dist.get_rank() == pool.workers - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    begin = time.monotonic()
    with pytest.raises(libra.TransportError) as raised:
        for _ in range(3):
            libra.attention(*inputs, plan=plan)
    assert time.monotonic() - begin < SOON
    return str(raised.value)


@pytest.mark.parametrize("size", [2, 3])
def test_the_death_of_a_rank_is_an_error_on_every_survivor(size):
    world = World(size)
    outcomes = world.outcomes(die_between_passes)
    world.close()
    assert outcomes[-1][1] == "died"
    for error, raised in outcomes[:-1]:
        assert raised == ""
        assert f"worker {size - 1}" in error and "step " in error


def pools_that_do_not_divide():
    with pytest.raises(libra.ConfigError, match="pools of 3 workers do not divide a group of 2"):
        libra.Pool(workers=3)
    pool = libra.Pool()
    case = Case(4, samples=skewed(4))
    with pytest.raises(libra.ConfigError, match="for 4 workers and the pool has 2 ranks"):
        pool.plan(case.plan_options(), case.sequences())
    pool.close()


def test_a_pool_of_another_size_than_the_plans_is_an_error(worlds):
    worlds(2).run(pools_that_do_not_divide)


def closed_pool():
    pool = libra.Pool()
    case = Case(pool.workers, samples=skewed(pool.workers))
    plan = pool.plan(case.plan_options(), case.sequences())
    shard = shard_of(case, plan)
    pool.close()
    pool.close()
    with pytest.raises(libra.ConfigError, match="closed"):
        libra.attention(shard.q, shard.k, shard.v, plan=plan)


def test_a_closed_pool_says_so(worlds):
    worlds(2).run(closed_pool)
