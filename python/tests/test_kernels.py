"""Pools whose attention is computed by the caller's kernels."""

import gc
import random
import re
import time
import weakref

import pytest
import torch
import torch.distributed as dist

import dense_kernels
import libra
from dense_kernels import DenseKernels, FailingKernels
from pools import Case, assert_exact, deviation, exact, plan_of, run_case, shard_of, skewed

NODES = dict(tau=0.0, gpus_per_node=2, node_fetch=True, block_tokens=8)
CASES = {
    "P1": Case(1),
    "P1 nothing local": Case(1, options=dict(local_first=False, chunks=4)),
    "P2": Case(2, options=dict(tau=0.0)),
    "P2 one chunk": Case(2, options=dict(tau=0.0, chunks=1)),
    "P2 four chunks of one KV head": Case(2, shape=(8, 1, 24, 8), options=dict(
        tau=0.0, head_shards=2, chunks=4)),
    "P2 refetch": Case(2, options=dict(tau=0.0, backward="refetch")),
    "P2 whole groups": Case(2, options=dict(placer="paper", local_first=False, fetch="whole")),
    "P2 no GQA": Case(2, shape=(4, 4, 8, 8), options=dict(tau=0.0)),
    "P2 a replica without a sample": Case(2, samples=[[[], [117]]], options=dict(tau=0.0)),
    "CP2 zigzag-row": Case(1, cp=2, options=dict(home="zigzag-row")),
    "CP2 TP2": Case(1, cp=2, tp=2),
    "P2 CP2": Case(2, cp=2),
    "P2 CP2 zigzag-document": Case(2, cp=2, options=dict(home="zigzag-document", chunks=1)),
    "P4": Case(4, options=dict(tau=0.0)),
    "CP4 ulysses": Case(1, cp=4, options=dict(placer="ulysses", head_shards=4, chunks=1)),
    "P2 CP2, two nodes, keys fetched once": Case(2, cp=2, options=NODES),
    "P4, two nodes, zigzag-document": Case(2, cp=2, options=dict(NODES, home="zigzag-document")),
}


def poisoned_case(case, kernels):
    """Memory that is not written is NaN."""
    torch.use_deterministic_algorithms(True)
    try:
        return run_case(case, kernels=kernels)
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("name", CASES)
def test_a_pool_with_kernels_equals_dense_attention(worlds, name):
    case = CASES[name]
    case.samples = case.samples or skewed(case.replicas)
    case.seed = random.SystemRandom().randrange(1 << 30)
    print("seed", case.seed)
    assert_exact(worlds(case.workers).run(poisoned_case, case, DenseKernels()))


class CountingKernels(DenseKernels):
    def __init__(self):
        self.calls = []

    def forward(self, q, k, v, cu_q, cu_k, max_q, max_k, causal, scale):
        self.calls.append(len(cu_q) - 1)
        return super().forward(q, k, v, cu_q, cu_k, max_q, max_k, causal, scale)


def test_the_blocks_of_a_sample_are_one_sequence():
    kernels = CountingKernels()
    pool = libra.Pool(kernels=kernels)
    case = Case(1, samples=[[[117, 3]]])
    _, plan = plan_of(pool, case, block_tokens=16, head_shards=1)
    shard = shard_of(case, plan)
    q, k, v = (t.requires_grad_() for t in (shard.q, shard.k, shard.v))
    exact(shard, libra.attention(q, k, v, plan=plan), q, k, v)
    pool.close()
    assert kernels.calls == [2]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_other_dtypes_are_as_good_as_the_references(dtype):
    case = Case(1, samples=skewed(1), options=dict(dtype=libra._tensors.DTYPES[dtype]))
    errors = []
    for kernels in (DenseKernels(), None):
        pool = libra.Pool(kernels=kernels)
        _, plan = plan_of(pool, case)
        shard = shard_of(case, plan, dtype=dtype)
        inputs = [t.requires_grad_() for t in (shard.q, shard.k, shard.v)]
        out = libra.attention(*inputs, plan=plan)
        out.backward(shard.d_out)
        errors.append([deviation(got.double(), right) for got, right in zip(
            (out, *(t.grad for t in inputs)), (shard.out, shard.dq, shard.dk, shard.dv))])
        pool.close()
    for ours, references in zip(*errors):
        assert ours <= 2 * references


def test_autocast_and_a_model_around_it_leave_kernels_alone():
    pool = libra.Pool(kernels=DenseKernels())
    case, plan = plan_of(pool, dtype="bf16")
    shard = shard_of(case, plan, dtype=torch.float32)
    q, k, v = (t.requires_grad_() for t in (shard.q, shard.k, shard.v))
    with torch.autocast("cpu", torch.bfloat16):
        out = libra.attention(q, k, v, plan=plan)
        out.sum().backward()
    assert q.grad.isfinite().all() and deviation(out.double(), shard.out) < 0.1
    pool.close()


# --- failures ------------------------------------------------------------------------------------

DEADLINE = 60.0
SOON = 30.0  # on a busy machine too


def attend_with(method, result):
    odd = dist.get_rank() == 1
    pool = libra.Pool(kernels=FailingKernels(method, result) if odd else DenseKernels(),
                      deadline=DEADLINE)
    case = Case(pool.workers, samples=skewed(pool.workers), options=dict(tau=0.0))
    plan = pool.plan(case.plan_options(), case.sequences())
    shard = shard_of(case, plan)
    q, k, v = (t.requires_grad_() for t in (shard.q, shard.k, shard.v))
    try:
        libra.attention(q, k, v, plan=plan).sum().backward()
        return "nothing was raised"
    except libra.Error as error:
        return f"{type(error).__name__}: {error}"
    finally:
        dist.barrier()  # a pool that is closed tells others, too
        pool.close()


def one_short(out, *others):
    return out[:-1], *others


def first_only(out, *others):
    return out


def in_half(*results):
    return [t.half() for t in results]


def lists(*results):
    return [t.tolist() for t in results]


@pytest.mark.parametrize("method", ["forward", "backward"])
@pytest.mark.parametrize("result, words", [
    (dense_kernels.raise_value_error, "Error: the attention kernels raised ValueError: no such"),
    (dense_kernels.raise_config_error, "ConfigError: head_dim 16 is not for these kernels"),
    (one_short, r"ConfigError: the kernels' \w+ returned (out|dq) as \[\d+, 4, 16\] torch.float64 "
     r"on cpu: it must be \[\d+, 4, 16\] torch.float64 on cpu"),
    (in_half, r"returned (out|dq) as \[\d+, 4, 16\] torch.float16 on cpu: it must be"),
    (first_only, r"must return \((out, lse|dq, dk, dv)\), not \[\d+, 4, 16\] torch.float64"),
    (lists, r"returned (out|dq) as \d+ values: it must be"),
])
def test_what_kernels_do_wrong_on_one_rank_is_an_error_on_both(worlds, method, result, words):
    assert_told(worlds(2), method, result, words)


@pytest.mark.parametrize("method", ["forward", "backward"])
def test_what_kernels_raise_on_one_rank_is_an_error_on_all(worlds, method):
    assert_told(worlds(4), method, dense_kernels.raise_value_error,
                "Error: the attention kernels raised ValueError: no such")


def assert_told(world, method, result, words):
    begin = time.monotonic()
    other, odd, *others = world.run(attend_with, method, result)
    assert re.search(words, odd) and "\n" not in odd
    for error in (other, *others):
        assert error.startswith("TransportError: ") and "worker 1" in error
        assert re.search(words.partition("Error: ")[2] or words, error), error
    assert time.monotonic() - begin < SOON


def test_flash_attention_is_refused_on_a_cpu():
    with pytest.raises(libra.ConfigError, match="FlashAttention computes on cuda, and the pool's "
                                                "device is cpu: leave out kernels"):
        libra.Pool(kernels=libra.kernels.FlashAttention())


def test_what_is_no_kernels_is_refused():
    with pytest.raises(libra.ConfigError, match="Pool cannot take kernels='flash', a str: it must "
                                                "be a Kernels or None"):
        libra.Pool(kernels="flash")


def test_a_pool_lets_go_of_its_kernels():
    kernels = DenseKernels()
    pool = libra.Pool(kernels=kernels)
    case, plan = plan_of(pool)
    shard = shard_of(case, plan)
    libra.attention(shard.q, shard.k, shard.v, plan=plan)
    left = weakref.ref(kernels)
    pool.close()
    del pool, kernels, plan
    gc.collect()
    assert left() is None


# --- FlashAttention, as far as there is no GPU ---------------------------------------------------

def meta(*shape, dtype=torch.bfloat16):
    return torch.empty(*shape, dtype=dtype, device="meta")


def test_flash_attention_calls_the_operator_as_it_is_declared():
    q, k, v, cu = meta(10, 4, 64), meta(20, 2, 64), meta(20, 2, 64), meta(3, dtype=torch.int32)
    flash = libra.kernels.FlashAttention()
    out, lse = flash.forward(q, k, v, cu, cu, 6, 12, True, 0.1)
    assert (out.shape, lse.shape, lse.dtype) == (q.shape, (4, 10), torch.float32)
    gradients = flash.backward(out, q, k, v, out, lse, cu, cu, 6, 12, True, 0.1)
    assert [g.shape for g in gradients] == [q.shape, k.shape, v.shape]


@pytest.mark.parametrize("shapes, dtype, words", [
    ((64, 64), torch.float32, "in bf16 and fp16, and the plan in torch.float32"),
    ((96, 64), torch.bfloat16, "the plan has 96 and 64"),
    ((60, 60), torch.bfloat16, "a multiple of 8"),
    ((264, 264), torch.float16, "up to 256"),
])
def test_flash_attention_says_what_it_is_made_for(shapes, dtype, words):
    q, k, v = (meta(8, 2, dim, dtype=dtype) for dim in (shapes[0], *shapes))
    cu = meta(2, dtype=torch.int32)
    with pytest.raises(libra.ConfigError, match=words):
        libra.kernels.FlashAttention().forward(q, k, v, cu, cu, 8, 8, True, 1.0)
