"""What goes wrong on one rank is an error on every rank, soon, in words that say what it was."""

import os
import signal
import time
from concurrent import futures
from datetime import timedelta
from unittest import mock

import pytest
import torch
import torch.distributed as dist

import libra
from libra import _pool
from libra._differences import contradictions
from libra._port import TorchPort
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


@pytest.mark.parametrize("difference, words", [
    (dict(samples=[60, 60]), "the lengths of samples differ"),
    (dict(options=dict(home="zigzag-row")),
     "the option home is 'contiguous' on worker 0, 'zigzag-row' on worker 1"),
    (dict(options=dict(tau=0.5)), "the option tau is 0.03 on worker 0, 0.5 on worker 1"),
    (dict(options=dict(chunks=1)), "the option chunks is 2 on worker 0, 1 on worker 1"),
    (dict(options=dict(backward="refetch")), "the option backward is 'keep' on worker 0"),
    (dict(options=dict(q_heads=4)), "the option q_heads is 8 on worker 0, 4 on worker 1"),
], ids=str)
def test_other_lengths_layouts_or_options_are_a_plan_error_on_every_rank(worlds, difference,
                                                                         words):
    for error in worlds(2).run(attend, 60.0, None, difference.get("options"),
                               difference.get("samples")):
        assert error.startswith("PlanError: worker ")
        assert ("lengths, options and version must be the same on every rank of a pool; " +
                words) in error


def facts(**changes):
    return dict(version="1", lengths="a", options=dict(chunks="2"), **changes)


@pytest.mark.parametrize("odd, words", [
    (dict(version="2"), ["the version is 1 on worker 0, 2, 2 on worker 1"]),
    (dict(lengths="b", options=dict(chunks="2", max_tile_pairs="9")),
     ["the lengths of samples differ"]),
    (dict(lengths="b", options=dict(chunks="4")),
     ["the lengths of samples differ", "the option chunks is 2 on worker 0, 2, 4 on worker 1"]),
    (dict(), ["what is balanced differs: device_profile, memory_cap and cluster must be the same "
              "too"]),
], ids=str)
def test_what_differs_between_plans_is_told(odd, words):
    assert contradictions([facts(), {**facts(), **odd}, facts()]) == words


def costs_that_differ():
    """One rank balances seconds, the other FLOPs."""
    pool = libra.Pool(deadline=60.0)
    case = Case(pool.workers, samples=skewed(pool.workers))
    planning = libra._core.Planning(case.plan_options(), *["h200"] * dist.get_rank())
    plan = pool.plan(planning, case.sequences())
    shard = shard_of(case, plan)
    with pytest.raises(libra.PlanError, match="device_profile, memory_cap and cluster must be"):
        libra.attention(shard.q, shard.k, shard.v, plan=plan)
    pool.close()


def test_other_costs_are_a_plan_error(worlds):
    worlds(2).run(costs_that_differ)


def pool_of_gpus(**options):
    """(pool, stand-in for the worker on its GPU)."""
    device = mock.Mock()
    device.is_busy.return_value = False
    with mock.patch.object(libra._core, "device_worker", lambda *_: device):
        pool = libra.Pool(device=f"cuda:{dist.get_rank()}", **options)
    pool._stream = lambda: 0
    return pool, device


def gpus_agree():
    """Pools on GPUs agree over torch.distributed, beside the GPUs."""
    pool, device = pool_of_gpus()
    case = Case(pool.workers, samples=skewed(pool.workers))
    pool.bind(pool.plan(case.plan_options(), case.sequences()))
    device.bind.assert_called_once()
    with pytest.raises(libra.PlanError) as raised:
        tau = (1 + dist.get_rank()) * 0.1
        pool.bind(pool.plan(case.plan_options(tau=tau), case.sequences()))
    device.bind.assert_called_once()
    pool.close()
    device.close.assert_called_once()
    return str(raised.value)


def test_other_plans_of_gpus_are_the_same_error(worlds):
    words = ("hold different plans: lengths, options and version must be the same on every rank of "
             "a pool; the option tau is 0.1 on worker 0, 0.2 on worker 1")
    for rank, error in enumerate(worlds(2).run(gpus_agree)):
        assert error == f"worker {rank} and worker {1 - rank} {words}"


def close_with_passes_in_flight():
    pool, device = pool_of_gpus()
    device.is_busy.side_effect = [True, True, False]
    device.close.side_effect = lambda: device.is_busy.assert_has_calls([mock.call()] * 3)
    pool.close()
    device.close.assert_called_once()


def close_with_passes_that_do_not_end():
    pool, device = pool_of_gpus(deadline=0.5)
    device.is_busy.return_value = True
    begin = time.monotonic()
    pool.close()
    assert 0.5 <= time.monotonic() - begin < 20
    device.close.assert_called_once()


def close_and_interrupt():
    pool, device = pool_of_gpus()
    device.is_busy.side_effect = KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        pool.close()
    device.close.assert_called_once()
    with pytest.raises(libra.ConfigError, match="closed"):
        pool._open_group()


@pytest.mark.parametrize("ends", [close_with_passes_in_flight, close_with_passes_that_do_not_end,
                                  close_and_interrupt])
def test_a_pool_of_gpus_waits_for_its_passes_and_is_let_go(worlds, ends):
    worlds(2).run(ends)


def die_before_gpus_agree():
    pool, device = pool_of_gpus(deadline=60.0)
    case = Case(pool.workers, samples=skewed(pool.workers))
    plan = pool.plan(case.plan_options(), case.sequences())
    if dist.get_rank() == pool.workers - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(libra.TransportError) as raised:
        pool.bind(plan)
    device.bind.assert_not_called()
    device.abort.assert_called_once_with(str(raised.value))  # so that no GPU waits for this one
    pool.close()
    return str(raised.value)


def test_a_rank_that_dies_before_gpus_agree_is_named():
    world = World(3)
    outcomes = world.outcomes(die_before_gpus_agree)
    world.close()
    for error, raised in outcomes[:-1]:
        assert raised == ""
        assert "worker 2 in step 0, agreement on the plan" in error


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
    (in_fp32, "Q is [120, 8, 16] fp32: the plan has [120, 8, 16] fp64 for this worker; under "
     'torch.autocast or in such a model, plan with PlanOptions(dtype="fp32")'),
    (of_other_heads, "K is [120, 2, 16] fp64: the plan has [120, 4, 16] fp64 for this worker"),
    (as_if_on_another_device, "must be on cuda, where the pool's plans run: one is on cpu"),
])
def test_wrong_tensors_on_one_rank_are_an_error_on_every_rank_at_once(worlds, change, words):
    begin = time.monotonic()
    other, odd = worlds(2).run(attend, 60.0, change)
    assert odd.startswith("ConfigError: ") and words in odd
    assert other.startswith("TransportError: worker 0 ") and words.split(";")[0] in other
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


def abort_twice():
    pool = libra.Pool()
    tell = TorchPort.fail

    def fail(self, cause):
        time.sleep(0.5)
        tell(self, cause)

    with mock.patch.object(TorchPort, "fail", fail), futures.ThreadPoolExecutor() as threads:
        for each in [threads.submit(pool._core.abort, "twice") for _ in range(2)]:
            each.result()
    pool.close()


def test_two_threads_may_fail_at_once(worlds):
    """The one that awaits messages and a pass's: the second goes on once the first has told."""
    worlds(2).run(abort_twice)


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


LONG = 30.0  # seconds: a deadline that nobody should come to


def hear_of(cause):
    """The last rank fails; rank 1 has something else to do until the others know, all of whom wait
    for it first. The error, and seconds until it was raised."""
    pool = libra.Pool(deadline=LONG)
    case = Case(pool.workers, samples=skewed(pool.workers), options=dict(tau=0.0))
    plan = pool.plan(case.plan_options(), case.sequences())
    shard = shard_of(case, plan)
    inputs = (shard.q, shard.k, shard.v)
    libra.attention(*inputs, plan=plan)
    store = dist.distributed_c10d._get_default_store()
    others = [w for w in range(pool.workers) if w not in (1, pool.worker)]
    if pool.worker == 1:
        store.wait([f"{cause} known to {w}" for w in others], timedelta(seconds=LONG + SOON))
    begin = time.monotonic()
    with pytest.raises(libra.Error) as raised:
        if pool.worker == pool.workers - 1:
            pool.fail(libra.ConfigError(cause))
        libra.attention(*inputs, plan=plan)
    seconds = time.monotonic() - begin
    store.set(f"{cause} known to {pool.worker}", "")
    pool.close()
    return str(raised.value), seconds


@pytest.mark.parametrize("size", [3, 4])
def test_ranks_that_wait_for_one_that_is_busy_hear_of_the_first_cause(worlds, size):
    for error, seconds in worlds(size).run(hear_of, f"no tensors in {size}"):
        assert f"no tensors in {size}" in error
        assert seconds < LONG / 2


def gather_without_one():
    pool = libra.Pool(deadline=LONG)
    begin = time.monotonic()
    with pytest.raises(libra.Error) as raised:
        if pool.worker == 2:
            pool.fail(libra.ConfigError("no lengths"))
        pool.plan_together(Case(pool.workers).plan_options(), [8, 8])
    assert time.monotonic() - begin < LONG / 2
    dist.barrier()
    pool.close()
    return f"{type(raised.value).__name__}: {raised.value}"


def test_lengths_that_cannot_be_gathered_are_an_error_with_the_cause_on_every_rank(worlds):
    *others, odd = worlds(3).run(gather_without_one)
    assert odd == "ConfigError: no lengths"
    for worker, error in enumerate(others):
        assert error == (f"TransportError: worker {worker} did not hear of all workers what they "
                         "hold: worker 2 aborted: no lengths")


def gather_late():
    pool = libra.Pool(deadline=LONG)
    time.sleep(2.5 * pool.worker)
    assert pool.plan_together(Case(pool.workers).plan_options(), [8, 8]).rows == 16
    pool.close()


def test_lengths_are_waited_for(worlds):
    worlds(2).run(gather_late)


def gather_beside_a_busy_rank():
    pool = libra.Pool(deadline=LONG)
    store = dist.distributed_c10d._get_default_store()
    if pool.worker == 1:
        store.wait(["lengths given up"], timedelta(seconds=LONG + SOON))
    begin = time.monotonic()
    with mock.patch.object(TorchPort, "first_cause", lambda _: "worker 7 aborted: no lengths"), \
            pytest.raises(libra.TransportError, match="they hold: worker 7 aborted: no lengths$"):
        pool.plan_together(Case(pool.workers).plan_options(), [8, 8])
    assert time.monotonic() - begin < LONG / 2
    store.set("lengths given up", "")
    pool.close()


def test_ranks_that_wait_for_the_lengths_of_one_that_is_busy_hear_of_the_first_cause(worlds):
    worlds(2).run(gather_beside_a_busy_rank)


def pools_that_do_not_divide():
    with pytest.raises(libra.ConfigError, match=(
            r"pools of 3 workers do not divide a group of 2.*libra.Pool\(alone=True\)")):
        libra.Pool(workers=3)
    pool = libra.Pool()
    case = Case(4, samples=skewed(4))
    with pytest.raises(libra.ConfigError, match=(
            r"for 4 workers and the pool has 2 ranks.*libra.Pool\(alone=True\)")):
        pool.plan(case.plan_options(), case.sequences())
    pool.close()


def test_a_pool_of_another_size_than_the_plans_is_an_error(worlds):
    worlds(2).run(pools_that_do_not_divide)


def reach(transport, hosts, change_transport=False):
    """What a pool of GPUs would be made with, or why it is not."""
    made = []

    def device_worker(*args):
        made.append(args)
        return mock.Mock(**{"is_busy.return_value": False})

    rank = dist.get_rank()
    transport = "peer" if change_transport and rank == 1 else transport
    with mock.patch.object(libra._core, "device_worker", device_worker), \
            mock.patch.object(libra._core, "make_nccl_id", lambda: b"id of rank %d" % rank), \
            mock.patch.object(_pool, "_host", lambda: hosts[rank]):
        try:
            libra.Pool(device=f"cuda:{rank}", transport=transport, one_queue=rank == 1).close()
        except libra.ConfigError as error:
            return str(error)
    (name, worker, workers, device, one_queue, _, near, nccl_id, _), = made
    assert (worker, workers, device, one_queue) == (rank, 4, rank, True)
    return name, near, nccl_id


@pytest.mark.parametrize("transport, hosts, near, nccl_id", [
    ("auto", "aaaa", [[0, 1, 2, 3]] * 4, b""),
    ("peer", "aaaa", [[0, 1, 2, 3]] * 4, b""),
    ("auto", "abab", [[0, 2], [1, 3]] * 2, b"id of rank 0"),
    ("auto", "abcd", [[0], [1], [2], [3]], b"id of rank 0"),
    ("nccl", "aabb", [[]] * 4, b"id of rank 0"),
])
def test_gpus_are_reached_by_copy_engines_within_a_host_and_by_nccl_beyond(worlds, transport, hosts,
                                                                           near, nccl_id):
    results = worlds(4).run(reach, transport, hosts)
    assert len({name for name, _, _ in results}) == 1
    assert [reached for _, reached, _ in results] == near
    assert {each for _, _, each in results} == {nccl_id}


def test_transports_that_cannot_be_are_an_error_on_every_rank(worlds):
    for error in worlds(4).run(reach, "peer", "aabb"):
        assert "on 2 hosts, and transport peer is within one" in error
    for error in worlds(4).run(reach, "nccl", "aaaa", True):
        assert "transport is nccl, peer, nccl, nccl by worker" in error
    with pytest.raises(libra.ConfigError, match="no transport 'tcp': auto, peer and nccl"):
        libra.Pool(transport="tcp")
    with pytest.raises(libra.ConfigError, match="between GPUs"):
        libra.Pool(transport="nccl")


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


@pytest.mark.parametrize("said, queues", [("", 8), ("1", 1), ("32", 32), ("many", 8)])
def test_a_gpu_has_eight_hardware_queues_unless_the_environment_says_otherwise(
        said, queues, monkeypatch):
    monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", said)
    assert _pool._connections() == queues
