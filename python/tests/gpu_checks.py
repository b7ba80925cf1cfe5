"""What must hold on GPUs between two processes, which share a GPU where there is one: run by
test_gpu.py, or as a program where there is no pytest.

    PYTHONPATH=build/gpu/python python3 python/tests/gpu_checks.py [hosts | name...]
"""

import functools
import os
import signal
import sys
import time
from unittest import mock

import torch
import torch.distributed as dist
from torch.utils.checkpoint import checkpoint

import libra
from libra import _pool
from libra.kernels import FlashAttention
from worlds import World

SAMPLES = [[[2048], [256] * 7 + [100, 0, 1, 1]], [[1500, 548], [64] * 32]]
SHAPE = (8, 2, 128, 128)
TOKENS = 2048


def own_device():
    """Of this rank; ranks share GPUs where they are more."""
    return torch.device("cuda", dist.get_rank() % torch.cuda.device_count())


def attention_by_sample(q, k, v, samples):
    """torch's own attention of a whole sequence, sample by sample, in the inputs' dtype."""
    outs, begin = [], 0
    for tokens in samples:
        if tokens == 0:
            continue
        part = (t[begin:begin + tokens].transpose(0, 1)[None] for t in (q, k, v))
        out = torch.nn.functional.scaled_dot_product_attention(
            *part, is_causal=True, enable_gqa=True)
        outs.append(out[0].transpose(0, 1))
        begin += tokens
    outs.append(q.new_zeros(q.shape[0] - begin, q.shape[1], v.shape[2]))
    return torch.cat(outs)


def tensors(replica, device, shape=SHAPE):
    q_heads, kv_heads, head_dim, value_dim = shape
    random = torch.Generator().manual_seed(replica)
    sizes = [(q_heads, head_dim), (kv_heads, head_dim), (kv_heads, value_dim),
             (q_heads, value_dim)]
    return [torch.randn(TOKENS, *size, generator=random).bfloat16().to(device) for size in sizes]


def options(cp=1, shape=SHAPE, **changes):
    q_heads, kv_heads, head_dim, value_dim = shape
    given = dict(q_heads=q_heads, kv_heads=kv_heads, head_dim=head_dim, value_dim=value_dim,
                 cp=cp, block_tokens=256, head_shards=2, chunks=2)
    return libra.PlanOptions(**{**given, **changes})


class Rank:
    """This process's GPU, pool, plan and shard; `case`: index of SAMPLES; apart: as if each rank
    were on a host of its own."""

    def __init__(self, cp=1, case=0, deadline=60.0, one_queue=None, shape=SHAPE, measure=False,
                 transport="auto", apart=False, kernels=None, **changes):
        rank = dist.get_rank()
        self.device = own_device()
        torch.cuda.set_device(self.device)
        name = f"host {rank}" if apart else "host"
        with mock.patch.object(_pool, "_host", lambda: name):
            self.pool = libra.Pool(device=self.device, deadline=deadline, one_queue=one_queue,
                                   measure=measure, transport=transport, kernels=kernels)
        replicas = self.pool.workers // cp
        self.samples = SAMPLES[case][self.pool.worker // cp]
        self.plan = self.pool.plan(options(cp, shape, **changes), [
            libra.PackedSequence(TOKENS, samples) for samples in SAMPLES[case][:replicas]])
        self.whole = tensors(self.pool.worker // cp, self.device, shape)
        self.rows = self.plan.token_index().to(self.device)

    def own(self):
        q, k, v, d_out = (t[self.rows].clone() for t in self.whole)
        return *(t.requires_grad_() for t in (q, k, v)), d_out

    def reference(self, dtype):
        """out, dq, dk, dv of the own rows, computed by torch in this dtype."""
        q, k, v, d_out = (t.to(dtype) for t in self.whole)
        inputs = [t.detach().requires_grad_() for t in (q, k, v)]
        out = attention_by_sample(*inputs, self.samples)
        out.backward(d_out)
        return [t.detach()[self.rows].float() for t in (out, *(t.grad for t in inputs))]


def judge(rank, out, inputs, d_out):
    """Errors against fp32 are at most twice those of torch in bf16, as FlashAttention's tests."""
    for tensor in inputs:
        tensor.grad = None
    out.backward(d_out)
    compare(rank, out, inputs)


def compare(rank, out, inputs):
    exact, torchs = rank.reference(torch.float32), rank.reference(torch.bfloat16)
    ours = [out.detach().float(), *(t.grad.float() for t in inputs)]
    for name, our, theirs, right in zip(("out", "dq", "dk", "dv"), ours, torchs, exact):
        error, allowed = (our - right).abs().max(), 2 * (theirs - right).abs().max() + 1e-4
        assert error <= allowed, (name, float(error), float(allowed))


def attend(attention=libra.attention, **of_rank):
    rank = Rank(**of_rank)
    q, k, v, d_out = rank.own()
    judge(rank, attention(q, k, v, plan=rank.plan), (q, k, v), d_out)
    rank.pool.close()


def closed_at_once(late, **of_rank):
    """A rank may close its pool with passes in flight, `late` or not, and the other's end, too."""
    rank = Rank(deadline=20.0, **of_rank)
    q, k, v, d_out = rank.own()
    if rank.pool.worker == late:
        torch.cuda._sleep(2_000_000_000)  # a second
    out = libra.attention(q, k, v, plan=rank.plan)
    out.backward(d_out)
    rank.pool.close()
    compare(rank, out, (q, k, v))


def beside_default(**of_rank):
    """FlashAttention is as good as it must be, and so is the default on the same rank."""
    for kernels in (FlashAttention(), None):
        attend(kernels=kernels, **of_rank)


class RaisingAttention(FlashAttention):
    """Raises at its `good`-th call on rank 1: at the first, which is before a pass is exchanged,
    or in the middle of one."""

    def __init__(self, good):
        self.left = good

    def forward(self, *args):
        self.left -= dist.get_rank() == 1
        if self.left < 0:
            raise ValueError("no more calls")
        return super().forward(*args)


def raising_kernels(good):
    rank = Rank(kernels=RaisingAttention(good))
    q, k, v, _ = rank.own()
    begin = time.monotonic()
    try:
        for _ in range(20):
            libra.attention(q, k, v, plan=rank.plan)
            torch.cuda.synchronize()
        raise AssertionError("nothing was raised")
    except libra.Error as error:
        assert "the attention kernels raised ValueError: no more calls" in str(error), error
        assert dist.get_rank() == 1 or isinstance(error, libra.TransportError), error
        assert time.monotonic() - begin < 30
    finally:
        rank.pool.close()


def strided(q, k, v, plan):
    def fused(t):
        return torch.cat([t, t], 1)[:, :t.shape[1]]

    def heads_first(t):
        return t.transpose(0, 1).contiguous().transpose(0, 1)

    return libra.attention(fused(q), heads_first(k), fused(v), plan=plan)


def recomputed(q, k, v, plan):
    return checkpoint(functools.partial(libra.attention, plan=plan.id), q, k, v,
                      use_reentrant=False)


def compiled(q, k, v, plan):
    function = torch.compile(
        lambda q, k, v, plan: libra.attention(q * 1.0, k, v, plan=plan), fullgraph=True)
    return function(q, k, v, plan.id)


def on_a_side_stream(q, k, v, plan):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        out = libra.attention(q, k, v, plan=plan)
    torch.cuda.current_stream().wait_stream(stream)
    return out


def in_flight(**of_rank):
    """Two microbatches forward, then backward in the other order; and many layers after another."""
    rank = Rank(case=0, **of_rank)
    other = rank.pool.plan(options(), [libra.PackedSequence(TOKENS, s) for s in SAMPLES[1]])
    q, k, v, d_out = rank.own()
    outs = [libra.attention(q, k, v, plan=plan) for plan in (rank.plan, other, rank.plan)]
    outs[1].backward(d_out, retain_graph=True)
    for out in (outs[0], outs[2]):
        judge(rank, out, (q, k, v), d_out)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    for _ in range(50):
        libra.attention(q, k, v, plan=rank.plan).backward(d_out)
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() <= before
    rank.pool.close()


def frozen_and_eval():
    rank = Rank()
    q, k, v, d_out = rank.own()
    libra.attention(q, k.detach(), v.detach(), plan=rank.plan).backward(d_out)
    assert k.grad is None and q.grad is not None
    with torch.inference_mode():
        out = libra.attention(q, k, v, plan=rank.plan)
    assert (out.float() - rank.reference(torch.float32)[0]).abs().max() < 0.05
    rank.pool.close()


def traced():
    rank = Rank(measure=True)
    q, k, v, d_out = rank.own()
    path = f"libra-trace-{dist.get_rank()}.json"
    libra.attention(q, k, v, plan=rank.plan).backward(d_out)
    rank.pool.metrics()
    with libra.profile(rank.pool, path):
        libra.attention(q, k, v, plan=rank.plan).backward(d_out)
        figures = rank.pool.metrics()
    with open(path, encoding="utf-8") as file:
        assert "forward local" in file.read()
    os.unlink(path)
    assert figures["libra/passes"] == 2 and figures["libra/compute_seconds"] > 0, figures
    assert figures["libra/exposed_seconds"] < figures["libra/pass_seconds"], figures
    assert figures["libra/bytes_sent"] + figures["libra/bytes_received"] > 0, figures
    rank.pool.close()


def wrong_tensors(**of_rank):
    rank = Rank(deadline=10.0 if of_rank else 60.0, **of_rank)  # NCCL tells at the deadline
    q, k, v, _ = rank.own()
    if dist.get_rank() == 1:
        q, k, v = q.float(), k.float(), v.float()
    begin = time.monotonic()
    try:
        libra.attention(q, k, v, plan=rank.plan)
        torch.cuda.synchronize()
        libra.attention(q, k, v, plan=rank.plan)
        raise AssertionError("nothing was raised")
    except libra.Error as error:
        assert time.monotonic() - begin < 30
        return f"{type(error).__name__}: {error}"
    finally:
        rank.pool.close()


def other_plans(**of_rank):
    rank = Rank(tau=0.01 * (1 + dist.get_rank()), **of_rank)
    try:
        libra.attention(*rank.own()[:3], plan=rank.plan)
        raise AssertionError("nothing was raised")
    except libra.PlanError as error:
        assert "the option tau is 0.01 on worker 0, 0.02 on worker 1" in str(error), error
    finally:
        rank.pool.close()


def cpu_tensors():
    rank = Rank()
    try:
        libra.attention(*(t.cpu() for t in rank.own()[:3]), plan=rank.plan)
        raise AssertionError("nothing was raised")
    except libra.ConfigError as error:
        assert "must be on cuda" in str(error)
    finally:
        rank.pool.close()


def a_rank_dies(**of_rank):
    rank = Rank(deadline=5.0, **of_rank)
    q, k, v, _ = rank.own()
    libra.attention(q, k, v, plan=rank.plan)
    torch.cuda.synchronize()
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    begin = time.monotonic()
    try:
        for _ in range(3):
            out = libra.attention(q, k, v, plan=rank.plan)
            torch.cuda.synchronize()
        raise AssertionError("nothing was raised")
    except libra.TransportError as error:
        assert time.monotonic() - begin < 15
        assert "worker 1" in str(error), error
        return str(error)


def times(kernels=None):
    """Not a check: how long a layer takes, Libra's and torch's own on the own sequence."""
    tokens = 65536
    rank_number, device = dist.get_rank(), own_device()
    torch.cuda.set_device(device)
    pool = libra.Pool(device=device, kernels=kernels)
    samples = [[tokens], [1024] * 64]
    figures = {}
    for placer in ("none", "reserve"):
        plan = pool.plan(
            libra.PlanOptions(q_heads=32, kv_heads=8, head_dim=128, placer=placer, chunks=2),
            [libra.PackedSequence(tokens, s) for s in samples])
        q, k, v, d_out = (torch.randn(tokens, heads, 128, device=device, dtype=torch.bfloat16)
                          for heads in (32, 8, 8, 32))
        inputs = [t.requires_grad_() for t in (q, k, v)]
        for step in range(8):
            if step == 3:
                torch.cuda.synchronize()
                dist.barrier()
                begin = time.monotonic()
            libra.attention(*inputs, plan=plan).backward(d_out)
        torch.cuda.synchronize()
        figures[placer] = round((time.monotonic() - begin) / 5 * 1e3, 2)
    pool.close()
    return f"ms a layer, forward and backward: {figures}"


CHECKS = {
    "P2": functools.partial(attend),
    "CP2": functools.partial(attend, cp=2),
    "CP2 zigzag-document": functools.partial(attend, cp=2, home="zigzag-document", chunks=1),
    "P2 refetch": functools.partial(attend, backward="refetch"),
    "P2 paper": functools.partial(attend, placer="paper", local_first=False),
    "P2 one queue": functools.partial(attend, one_queue=True),
    "P2 dim 64": functools.partial(attend, shape=(8, 8, 64, 64)),
    "P2 another case": functools.partial(attend, case=1),
    "strides": functools.partial(attend, strided),
    "checkpointing": functools.partial(attend, recomputed),
    "compile": functools.partial(attend, compiled),
    "side stream": functools.partial(attend, on_a_side_stream),
    "in flight": in_flight,
    "closed at once": functools.partial(closed_at_once, 0),
    "closed at once, late itself": functools.partial(closed_at_once, 1),
    "frozen and eval": frozen_and_eval,
    "traced": traced,
    "CPU tensors": cpu_tensors,
    "other plans": other_plans,
    "times": times,
    "FlashAttention P2": functools.partial(beside_default),
    "FlashAttention CP2 zigzag-document": functools.partial(
        beside_default, cp=2, home="zigzag-document", chunks=1),
    "FlashAttention P2 refetch": functools.partial(beside_default, backward="refetch"),
    "FlashAttention P2 dim 64, another case": functools.partial(
        beside_default, shape=(8, 8, 64, 64), case=1),
    "FlashAttention side stream": functools.partial(
        attend, on_a_side_stream, kernels=FlashAttention()),
    "FlashAttention compile": functools.partial(attend, compiled, kernels=FlashAttention()),
    "FlashAttention in flight": functools.partial(in_flight, kernels=FlashAttention()),
    "FlashAttention times": functools.partial(times, kernels=FlashAttention()),
    "kernels that raise at once": functools.partial(raising_kernels, 0),
    "kernels that raise in a pass": functools.partial(raising_kernels, 8),
}

HOST_CHECKS = {  # over NCCL, and as between hosts
    "NCCL P2": functools.partial(attend, transport="nccl"),
    "NCCL CP2": functools.partial(attend, cp=2, transport="nccl"),
    "NCCL in flight": functools.partial(in_flight, transport="nccl"),
    "hosts P2": functools.partial(attend, apart=True),
    "hosts CP2 zigzag-document": functools.partial(
        attend, cp=2, home="zigzag-document", chunks=1, apart=True),
    "hosts P2 refetch": functools.partial(attend, backward="refetch", apart=True),
    "hosts in flight": functools.partial(in_flight, apart=True),
    "NCCL closed at once": functools.partial(closed_at_once, 0, transport="nccl"),
    "hosts closed at once": functools.partial(closed_at_once, 1, apart=True),
    "hosts other plans": functools.partial(other_plans, apart=True),
}


def check(name):
    """On a fresh job of two ranks; returns what rank 0 says."""
    world = World(2)
    try:
        return world.run({**CHECKS, **HOST_CHECKS}[name])[0]
    finally:
        world.close()


def check_failures(**of_rank):
    world = World(2)
    errors = world.run(functools.partial(wrong_tensors, **of_rank))
    world.close()
    assert errors[1].startswith("ConfigError: Q is "), errors
    assert errors[0].startswith("TransportError: "), errors
    world = World(2)
    outcomes = world.outcomes(functools.partial(a_rank_dies, **of_rank))
    world.close()
    assert outcomes[1][1] == "died" and not outcomes[0][1], outcomes
    return [*errors, outcomes[0][0]]


FAILURES = {"failures": {}, "NCCL failures": dict(transport="nccl"),
            "hosts failures": dict(apart=True)}


def check_each(names, known, check_one):
    """How many of these failed; a line each. For programs."""
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"no such check: {', '.join(unknown)}; they are {', '.join(known)}")
    failed = 0
    for name in names:
        begin = time.monotonic()
        try:
            said = check_one(name)
            print(f"ok      {name}: {time.monotonic() - begin:.1f} s {said or ''}", flush=True)
        except Exception as error:
            failed += 1
            print(f"FAILED  {name}: {time.monotonic() - begin:.1f} s {error}", flush=True)
    return failed


def main(names):
    if not names:
        names = [*CHECKS, "failures"]
    elif names == ["hosts"]:
        names = [*HOST_CHECKS, *(name for name in FAILURES if name != "failures")]
    return check_each(names, [*CHECKS, *HOST_CHECKS, *FAILURES], lambda name: (
        check_failures(**FAILURES[name]) if name in FAILURES else check(name)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
