"""How things end: pools closed from another thread, a user who interrupts, what is left behind."""

import _thread
import threading

import pytest
import torch.distributed as dist

import libra
from pools import Case, deviation, plan_of, shard_of
from samplers import sampler


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
