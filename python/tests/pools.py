"""What the ranks of a test do with a pool: their shard of known tensors, through Libra, against
dense attention of the whole sequence in one process."""

import math
from dataclasses import dataclass, field

import torch
import torch.distributed as dist

import dense
import libra

TOLERANCE = 1e-10  # fp64: what is larger is no rounding


@dataclass
class Case:
    """One pool shape and its sequences: samples[pool of the job][replica]."""
    replicas: int
    cp: int = 1
    tp: int = 1
    shape: tuple = (8, 4, 16, 16)
    tokens: int = 120
    samples: list = field(default_factory=list)
    options: dict = field(default_factory=dict)
    seed: int = 0

    @property
    def workers(self):
        return self.replicas * self.cp

    def plan_options(self, **changes):
        q_heads, kv_heads, head_dim, value_dim = self.shape
        given = dict(q_heads=q_heads, kv_heads=kv_heads, head_dim=head_dim, value_dim=value_dim,
                     dtype="fp64", cp=self.cp, tp=self.tp, block_tokens=16, head_shards=2,
                     chunks=2)
        return libra.PlanOptions(**{**given, **self.options, **changes})

    def sequences(self, pool_index=0):
        return [libra.PackedSequence(self.tokens, samples)
                for samples in self.samples[pool_index]]


def deviation(a, b):
    """The largest difference; equal infinities differ by nothing."""
    a, b = a.detach(), b.detach()
    difference = torch.where(a == b, torch.zeros_like(a), a - b).abs()
    return float(difference.max()) if difference.numel() else 0.0


@dataclass
class Shard:
    """One rank's rows and heads of its replica's tensors, and what must come out."""
    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    d_out: torch.Tensor
    out: torch.Tensor
    lse: torch.Tensor
    dq: torch.Tensor
    dk: torch.Tensor
    dv: torch.Tensor


def shard_of(case, plan, pool_index=0, scale=None, dtype=torch.float64, device="cpu"):
    """The inputs in `dtype`, and what must come out in fp64."""
    worker = plan.pool.worker
    replica, head_part = worker // case.cp, worker % case.tp
    given = [t.to(device) for t in dense.tensors(
        case.shape, case.tokens, case.seed + 100 * pool_index + replica, dtype)]
    q, k, v, d_out = (t.double() for t in given)
    for tensor in (q, k, v):
        tensor.requires_grad_()
    out, lse = dense.attention(q, k, v, case.samples[pool_index][replica], scale)
    dq, dk, dv = torch.autograd.grad((out * d_out).sum(), (q, k, v), materialize_grads=True)
    rows = plan.token_index().to(device)

    def own(tensor):
        heads = tensor.shape[1] // case.tp
        part = tensor.detach()[rows, head_part * heads:(head_part + 1) * heads]
        return part.clone()

    return Shard(*map(own, (*given, out, lse, dq, dk, dv)))


def gradients(out, d_out, *tensors):
    for tensor in tensors:
        tensor.grad = None
    (out * d_out).sum().backward()
    return [tensor.grad for tensor in tensors]


def plan_of(pool, case=None, **options):
    case = case or Case(pool.workers, samples=skewed(pool.workers))
    return case, pool.plan(case.plan_options(**options), case.sequences())


def exact(shard, out, q, k, v):
    got = gradients(out, shard.d_out, q, k, v)
    assert_exact([dict(out=deviation(out, shard.out),
                       **{name: deviation(value, getattr(shard, name))
                          for name, value in zip(("dq", "dk", "dv"), got)})])


def run_case(case, **of_pool):
    """Deviations of out, lse, dq, dk, dv on this rank."""
    pool = libra.Pool(workers=case.workers, **of_pool)
    pool_index = dist.get_rank() // case.workers
    plan = pool.plan(case.plan_options(return_lse=True), case.sequences(pool_index))
    shard = shard_of(case, plan, pool_index)
    q, k, v = (t.requires_grad_() for t in (shard.q, shard.k, shard.v))
    out, lse = libra.attention(q, k, v, plan=plan, return_lse=True)
    dq, dk, dv = gradients(out, shard.d_out, q, k, v)
    pool.close()
    found = dict(out=out, lse=lse, dq=dq, dk=dk, dv=dv)
    return {name: deviation(value, getattr(shard, name)) for name, value in found.items()}


def skewed(replicas, pools=1):
    """Samples of every kind: one long, many short, of one token, empty; and padding."""
    kinds = [[117], [1, 0, 30, 7, 1, 1, 60], [9] * 13, [50, 3, 41, 26]]
    return [[kinds[(pool + replica) % len(kinds)] for replica in range(replicas)]
            for pool in range(pools)]


def assert_exact(results):
    for rank, deviations in enumerate(results):
        for name, value in deviations.items():
            assert math.isfinite(value) and value < TOLERANCE, (rank, name, value)
