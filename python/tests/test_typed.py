"""Arguments of a wrong type: one line that says what, where, and what it must be."""

import math
import re

import numpy as np
import pytest
import torch

import libra
from libra._typed import typed

OPTIONS = libra.PlanOptions(q_heads=4, kv_heads=2, head_dim=8, dtype="fp64", chunks=1)
Q, KV = torch.zeros(16, 4, 8, dtype=torch.float64), torch.zeros(16, 2, 8, dtype=torch.float64)


def sampler(**changes):
    return libra.PooledBatchSampler(**{**dict(lengths=[8] * 40, seq_len=16, gbs=4, pool_size=1),
                                       **changes})


@pytest.mark.parametrize("call, words", [
    (lambda pool: libra.Planner(OPTIONS, pool), "Planner cannot take pool=PlanOptions(q_heads=4, "),
    (lambda pool: libra.Planner(pool, dict()), "options={}, a dict: it must be a PlanOptions"),
    (lambda pool: libra.Planner(pool, OPTIONS, prefetch="2"), "prefetch='2', a str: it must be an "
     "int"),
    (lambda pool: libra.Planner(pool, OPTIONS, memory_cap="1G"), "memory_cap='1G', a str: it must "
     "be an int or None"),
    (lambda _: sampler(gbs=4.0), "PooledBatchSampler cannot take gbs=4.0, a float: it must be an "
     "int"),
    (lambda _: sampler(seq_len=16.0), "seq_len=16.0, a float: it must be an int or a str"),
    (lambda pool: sampler(planner=pool), "planner=Pool(worker 0 of 1, cpu), a Pool: it must be a "
     "Planner or None"),
    (lambda _: sampler(seed=-1), "seed=-1, an int: it must be at least 0"),
    (lambda _: sampler(seq_len=1 << 70), "an int: it must be an int of 64 bits or a str"),
    (lambda _: sampler().set_epoch("1"), "PooledBatchSampler.set_epoch cannot take epoch='1', a "
     "str: it must be an int"),
    (lambda _: sampler().set_epoch(-1), "epoch=-1, an int: it must be an int, at least 0"),
    (lambda _: sampler(packing="wlb", equal_cost_tokens=math.nan), "nan is not above 0"),
    (lambda _: libra.read_lengths([1], column=1), "read_lengths cannot take column=1, an int"),
    (lambda _: libra.read_lengths("synthetic:paper-256k", seed=-1), "seed=-1, an int: it must be"),
    (lambda _: libra.Pool(workers=0), "Pool cannot take workers=0, an int: it must be at least 1"),
    (lambda _: libra.Pool(keep=0), "keep=0, an int: it must be at least 1"),
    (lambda _: libra.Pool(deadline=math.inf), "deadline=inf, a float: it must be from 0.001 to"),
    (lambda _: libra.Pool(device="meta"), "device='meta', a str: it must be a CPU or CUDA device"),
    (lambda _: sampler(keep_empty="yes"), "keep_empty='yes', a str: it must be True or False"),
    (lambda _: sampler().load_state_dict(None), "PooledBatchSampler.load_state_dict cannot take "
     "state=None: it must be a dict"),
    (lambda _: libra.Pool(workers="1"), "Pool cannot take workers='1', a str: it must be an int or "
     "None"),
    (lambda _: libra.Pool("world"), "Pool cannot take group='world', a str: it must be a "
     "ProcessGroup or DeviceMesh that this rank is in"),
    (lambda pool: pool.plan(OPTIONS, [16]), "Pool.plan cannot take sequences[0]=16, an int: it must"
     " be the lengths of a sequence's samples, a sequence of ints"),
    (lambda pool: pool.plan(OPTIONS, [[8.5, 7.5]]), "sequences[0]=[8.5, 7.5], a list: it must be"),
    (lambda pool: pool.plan([[16]], OPTIONS), "options=[[16]], a list: it must be a PlanOptions or "
     "a Planning"),
    (lambda pool: pool.plan(OPTIONS, 16), "sequences=16, an int: it must be a sequence of "
     "PackedSequences or sequences of ints"),
    (lambda pool: pool.adopt(pool.plan(OPTIONS, [[16]])), "it must be a PoolPlan"),
    (lambda pool: pool.plan_together(OPTIONS, ["16"]), "samples=['16'], a list: it must be"),
    (lambda _: libra.attention(Q, KV, KV, plan="1"), "attention cannot take plan='1', a str: it "
     "must be a Plan or its id, an int"),
    (lambda _: libra.attention(Q, KV, KV, plan={"libra_plan": 1}), "plan={'libra_plan': 1}, a "
     "dict: it must be"),
    (lambda pool: libra.attention(Q, KV, None, plan=pool.plan(OPTIONS, [[16]])), "v=None: it must "
     "be a torch.Tensor [tokens, heads, dim]"),
    (lambda pool: libra.attention(Q.numpy(), KV, KV, plan=pool.plan(OPTIONS, [[16]])), "ndarray: "
     "it must be a torch.Tensor"),
    (lambda pool: libra.attention(Q, KV, KV, plan=pool.plan(OPTIONS, [[16]]), scale="1"),
     "scale='1', a str: it must be a float or None"),
])
def test_what_cannot_be_is_said_in_one_line(pool, call, words):
    with pytest.raises(libra.ConfigError, match=re.escape(words)) as raised:
        call(pool)
    assert "\n" not in str(raised.value)


def test_a_pool_before_torch_distributed_says_what_comes_first():
    with pytest.raises(libra.ConfigError, match="dist.init_process_group comes first"):
        libra.Pool(workers=2)


def test_numbers_of_numpy_are_numbers(pool):
    given = sampler(gbs=np.int64(4), pool_size=np.int32(1), seed=np.uint8(3))
    assert len(given) == len(sampler(seed=3))
    pool.plan(OPTIONS, [np.array([8, 8])])
    pool.plan(OPTIONS, torch.tensor([[8, 8]]))
    libra.Pool(deadline=np.float32(5.0)).close()


def test_what_python_says_well_is_left_to_it():
    with pytest.raises(TypeError, match="unexpected keyword argument 'gsb'"):
        sampler(gsb=4)
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'seq_len'"):
        libra.PooledBatchSampler([8], gbs=1, pool_size=1)


def test_a_typed_function_keeps_its_name_docs_and_defaults():
    @typed
    def function(number: int = 3, anything=None):
        """What it does."""
        return number, anything

    assert (function.__name__, function.__doc__) == ("function", "What it does.")
    assert function() == (3, None) and function(4, "x") == (4, "x")
    with pytest.raises(libra.ConfigError, match="function cannot take number=None: it must be an"):
        function(None)
