"""How things end: pools closed from another thread, a user who interrupts, what is left behind."""

import _thread
import sys
import threading
import time
from concurrent import futures

import psutil
import pytest
import torch.distributed as dist

import libra
from pools import Case, deviation, plan_of, shard_of
from samplers import sampler
from worlds import World


# --- threads -------------------------------------------------------------------------------------

def test_passes_of_several_threads_run_one_after_the_other(pool):
    case = Case(1, tokens=500, samples=[[[500]]])
    _, plan = plan_of(pool, case)
    shard = shard_of(case, plan)
    worst = []

    def passes():
        for _ in range(20):
            out = libra.attention(shard.q, shard.k, shard.v, plan=plan)
            worst.append(deviation(out, shard.out))

    threads = [threading.Thread(target=passes) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(worst) == 80 and max(worst) < 1e-10
    figures = pool.metrics()
    assert figures["libra/passes"] == 80
    assert 0 < figures["libra/compute_seconds"] <= figures["libra/pass_seconds"]


def closed_while_waiting():
    pool = libra.Pool(deadline=60)
    case, plan = plan_of(pool)
    shard = shard_of(case, plan)
    libra.attention(shard.q, shard.k, shard.v, plan=plan)
    try:
        if dist.get_rank() == 0:
            threading.Timer(0.5, pool.close).start()
            with pytest.raises(libra.TransportError) as raised:
                libra.attention(shard.q, shard.k, shard.v, plan=plan)
            return str(raised.value)
    finally:
        dist.barrier()
        pool.close()


def test_a_pool_closed_in_the_middle_of_a_pass_ends_it(worlds):
    error, _ = worlds(2).run(closed_while_waiting)
    assert "the pool was closed in the middle of a pass" in error


def closed_while_gathering():
    """Seconds that closing took."""
    pool = libra.Pool(deadline=60)
    case = Case(pool.workers)
    seconds = 0.0
    if dist.get_rank() == 0:
        with futures.ThreadPoolExecutor() as threads:
            gathering = threads.submit(pool.plan_together, case.plan_options(), [8, 8])
            while pool._gathering is None:
                time.sleep(0.01)
            begin = time.monotonic()
            pool.close()
            seconds = time.monotonic() - begin
            with pytest.raises(libra.ConfigError, match="the pool has been closed"):
                gathering.result()
    dist.barrier()
    pool.close()
    return seconds


def test_a_pool_closed_while_lengths_are_gathered_does_not_wait_for_them(worlds):
    assert max(worlds(2).run(closed_while_gathering)) < 30


# --- what is left behind -------------------------------------------------------------------------

def made_and_closed(times):
    """(threads, open files) of this process afterwards."""
    for _ in range(times):
        pool = libra.Pool()
        case, plan = plan_of(pool)
        shard = shard_of(case, plan)
        libra.attention(shard.q, shard.k, shard.v, plan=plan)
        assert pool.plan_together(case.plan_options(), [8, 8]).rows == 16
        pool.close()
    dist.barrier()
    process = psutil.Process()
    return process.num_threads(), process.num_fds()


def test_closed_pools_leave_no_threads_and_no_files(worlds):
    before = worlds(2).run(made_and_closed, 1)
    assert worlds(2).run(made_and_closed, 5) == before


def of_unequal_ranks():
    dist.new_group([0])  # a group more on rank 0 than on rank 1
    pool = libra.Pool(deadline=20)
    case, plan = plan_of(pool)
    shard = shard_of(case, plan)
    out = libra.attention(shard.q, shard.k, shard.v, plan=plan)
    pool.close()
    return deviation(out, shard.out)


def test_ranks_of_a_pool_may_be_in_unlike_numbers_of_groups(worlds):
    assert max(worlds(2).run(of_unequal_ranks)) < 1e-10


def made_by_one_rank():
    if dist.get_rank() == 0:
        libra.Pool(deadline=1.0)


def test_a_rank_that_makes_no_pool_is_an_error_at_the_deadline():
    world = World(2)
    error, _ = world.errors(made_by_one_rank)
    world.close()
    assert "TransportError: worker 0 did not reach ranks [0, 1] of its pool within 1.0 s" in error


def test_plans_are_not_kept_for_metrics_that_nobody_asks_for():
    pool = libra.Pool(keep=1)
    case, plan = plan_of(pool)
    shard = shard_of(case, plan)
    libra.attention(shard.q, shard.k, shard.v, plan=plan)
    used = plan.core
    holders = sys.getrefcount(used)
    del plan
    plan_of(pool)  # of the last one nothing is kept now
    assert sys.getrefcount(used) < holders
    assert pool.metrics()["libra/balance"] == used.balance
    pool.close()


# --- a user who interrupts -----------------------------------------------------------------------

def count(made):
    return len(made)


def iterate(made):
    return next(iter(made))


@pytest.mark.parametrize("wait", [count, iterate])
def test_waiting_for_a_sampler_can_be_interrupted(wait):
    made = sampler()
    made.set_epoch(1 << 40)  # all before it are packed, since their last windows are carried on
    threading.Timer(0.3, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        wait(made)
    made.set_epoch(1)
    assert len(list(made)) == len(made)
