"""Pipeline parallelism: torch's own 1F1B schedule, two stages of two replicas that form a pool
each, several microbatches in flight."""

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

import dense
import libra
from pools import deviation

STAGES, DP, MICROBATCHES = 2, 2, 4
TOKENS, HIDDEN, HEADS, KV_HEADS, DIM = 72, 16, 4, 2, 8
SAMPLES = [  # [microbatch][replica]
    [[72], [10] * 7],
    [[1, 0, 30, 7], [60, 12]],
    [[5] * 14, [72]],
    [[33, 39], [72]],
]


class Layer(torch.nn.Module):
    """One stage: projections around attention, which is Libra's where a plan is given."""

    def __init__(self, stage):
        super().__init__()
        torch.manual_seed(stage)
        width = (HEADS + 2 * KV_HEADS) * DIM
        self.inward = torch.nn.Linear(HIDDEN, width, dtype=torch.float64)
        self.outward = torch.nn.Linear(HEADS * DIM, HIDDEN, dtype=torch.float64)

    def forward(self, x, plan=None, samples=None):
        q, k, v = self.inward(x[0]).unflatten(-1, (-1, DIM)).split(
            [HEADS, KV_HEADS, KV_HEADS], 1)
        if plan is None:
            out, _ = dense.attention(q, k, v, samples)
        else:
            out = libra.attention(q, k, v, plan=int(plan))
        return x + self.outward(out.flatten(1))[None]


def inputs_of(replica):
    random = torch.Generator().manual_seed(10 + replica)
    return torch.randn(MICROBATCHES, TOKENS, HIDDEN, generator=random, dtype=torch.float64)


def loss_of(out, target):
    return ((out - target) ** 2).sum()


def train():
    """Gradients of this rank's stage, and whether its pool moved anything."""
    rank = dist.get_rank()
    stage, replica = divmod(rank, DP)
    mesh = dist.device_mesh.init_device_mesh("cpu", (STAGES, DP), mesh_dim_names=("pp", "dp"))
    pool = libra.Pool(mesh["dp"])
    options = libra.PlanOptions(q_heads=HEADS, kv_heads=KV_HEADS, head_dim=DIM, dtype="fp64",
                                block_tokens=8, chunks=1)
    plans = [pool.plan(options, [libra.PackedSequence(TOKENS, s) for s in of_microbatch])
             for of_microbatch in SAMPLES]
    layer = Layer(stage)
    schedule = Schedule1F1B(
        PipelineStage(layer, stage, STAGES, torch.device("cpu"), group=mesh["pp"].get_group()),
        MICROBATCHES, loss_fn=loss_of, scale_grads=False)
    ids = torch.tensor([plan.id for plan in plans])
    x = inputs_of(replica)
    if stage == 0:
        schedule.step(x, plan=ids)
    else:
        schedule.step(plan=ids, target=torch.zeros_like(x))
    pool.close()
    moved = sum(plan.core.tiles_moved for plan in plans)
    return [p.grad for p in layer.parameters()], moved


def expected_gradients(replica):
    layers = [Layer(stage) for stage in range(STAGES)]
    for microbatch, x in enumerate(inputs_of(replica)):
        out = x[None]
        for layer in layers:
            out = layer(out, samples=SAMPLES[microbatch][replica])
        loss_of(out, torch.zeros_like(out)).backward()
    return [[p.grad for p in layer.parameters()] for layer in layers]


def test_microbatches_in_flight_have_plans_of_their_own(worlds):
    results = worlds(STAGES * DP).run(train)
    for rank, (gradients, moved) in enumerate(results):
        stage, replica = divmod(rank, DP)
        assert moved > 0
        for ours, theirs in zip(gradients, expected_gradients(replica)[stage], strict=True):
            assert deviation(ours, theirs) < 1e-10 * float(theirs.abs().max())
