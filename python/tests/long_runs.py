"""Ranks that go on and on: pools, layouts, shapes and windows at random, evaluation in between. Now
and then results are held against dense attention; memory, open files and threads must not grow (a
process's memory within what its allocators keep). Run by test_long_runs.py for some seconds, or as
a program where there is no pytest:

    PYTHONPATH=build/gpu/python python3 python/tests/long_runs.py cpu|peer|nccl [SECONDS] [SEED]
"""

import argparse
import faulthandler
import gc
import os
import random
import sys
import time
import traceback

import torch
import torch.distributed as dist

import libra
from faults import SHAPES, missing
from pools import Case, shard_of
from worlds import World

RANKS = {"cpu": 3, "peer": 2, "nccl": 2}
STEPS = 20  # of a pool
CHECKED = 10  # every so many steps
LEAST_POOLS = 3  # however long they take
LONG_STEP = 45  # seconds: most are graphs of shapes that no step has had before
SLACK = {"files": 0, "threads": 0, "mb": 48, "gpu_mb": 64}
GRAPH_MB = 2  # of the process's memory, for good: cuDNN's plan of a shape
HOMES = ["contiguous", "zigzag-row", "zigzag-document"]


def place_of(place):
    """(device, Pool's transport) of this rank."""
    if place == "cpu":
        return torch.device("cpu"), "auto"
    device = torch.device("cuda", dist.get_rank() % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device, place


def model_of(rng, place):
    """A `Case` without samples: what stays the same while a pool lives."""
    on_gpu, ranks = place != "cpu", dist.get_world_size()
    cp = rng.choice([cp for cp in (1, ranks) if ranks % cp == 0])
    shapes = [shape for shape in SHAPES["cuda" if on_gpu else "cpu"] if shape[1] % 2 == 0]
    shape = rng.choice(shapes)
    chunks = [chunks for chunks in (1, 2, 4) if shape[0] // 2 % chunks == 0]
    options = dict(tau=rng.choice([0.0, 0.05]), chunks=rng.choice(chunks), head_shards=2,
                   backward=rng.choice(["keep", "refetch"]), home=rng.choice(HOMES),
                   placer=rng.choice(["balanced", "reserve", "paper"]))
    if options["placer"] == "paper":
        options["local_first"] = False
    if on_gpu:
        options.update(dtype="bf16", block_tokens=256)
    return Case(ranks // cp, cp, shape=shape, options=options,
                tokens=rng.choice([4, 8]) * (256 if on_gpu else 24))


def window_of(rng, case):
    """Samples of every replica; all lengths are multiples of 2 CP, as zigzag documents want."""
    unit = 2 * case.cp
    replicas = []
    for _ in range(case.replicas):
        left, samples = case.tokens // unit, []
        while left and len(samples) < 40:
            samples.append(unit * rng.randint(1, left))
            left -= samples[-1] // unit
        replicas.append(samples)
    return replicas


def right(shard, inputs, out):
    allowed = 1e-10 if out.dtype == torch.float64 else 0.05
    pairs = [(out, shard.out), *((t.grad, getattr(shard, name))
                                 for t, name in zip(inputs, ("dq", "dk", "dv")))]
    for got, expected in pairs:
        error = (got.detach().double() - expected).abs().max() if got.numel() else 0.0
        assert error <= allowed * expected.abs().max() + allowed, float(error)


def step(pool, case, dtype, number):
    """A window's plan; two layers trained on it, checked at times, or an evaluation."""
    plan = pool.plan(case.plan_options(), case.sequences())
    shard = shard_of(case, plan, dtype=dtype, device=pool.device)
    inputs = [t.requires_grad_() for t in (shard.q, shard.k, shard.v)]
    if number % 5 == 4:
        with torch.no_grad():
            libra.attention(*inputs, plan=plan)
        return
    outs = [libra.attention(*inputs, plan=plan) for _ in range(2)]
    outs[1].backward(shard.d_out)
    for tensor in inputs:
        tensor.grad = None
    outs[0].backward(shard.d_out)
    if number % CHECKED == 0:
        right(shard, inputs, outs[0])


def resident_mb():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def let_go(device):
    gc.collect()
    if device.type == "cuda":
        torch.cuda.synchronize()
        torch.cuda.empty_cache()


def held(device, graphs):
    """What this process holds while it has no pool."""
    figures = {"graphs": graphs, "files": len(os.listdir("/proc/self/fd")),
               "threads": len(os.listdir("/proc/self/task")), "mb": resident_mb()}
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info()
        figures["gpu_mb"] = (total - free) >> 20
    return figures


def go_on(end):
    """Whether there is time left, as rank 0 sees it."""
    flag = torch.tensor([time.monotonic() < end])
    dist.broadcast(flag, 0)
    return bool(flag)


def keep_going(place, seconds, seed):
    """(pools, what was held after each of them)."""
    device, transport = place_of(place)
    rng, end, history = random.Random(seed), time.monotonic() + seconds, []
    dtype, graphs = torch.float64 if place == "cpu" else torch.bfloat16, 0
    while len(history) < LEAST_POOLS or go_on(end):
        case = model_of(rng, place)
        pool = libra.Pool(device=device, transport=transport, deadline=60.0)
        for number in range(STEPS):
            case.samples, case.seed = [window_of(rng, case)], rng.randrange(1 << 30)
            faulthandler.dump_traceback_later(LONG_STEP)  # says where, and goes on
            step(pool, case, dtype, number)
        faulthandler.cancel_dump_traceback_later()
        graphs += pool.metrics().get("libra/graphs_built", 0)
        pool.close()
        let_go(device)
        dist.barrier()
        history.append(held(device, graphs))
        dist.barrier()  # ranks may share a GPU, of which all of the memory is seen
        if dist.get_rank() == 0 and place != "cpu":
            print(f"pool {len(history)}, {end - time.monotonic():.0f} s left: {history[-1]}",
                  flush=True)
    return history


def keep_going_aloud(*args):
    """Says at once what is wrong: the other ranks may wait for this one."""
    try:
        return keep_going(*args)
    except BaseException:
        traceback.print_exc()
        raise


def check_flat(history):
    """The last third holds no more than the first half: what every process keeps has come by then,
    but for graphs. Returns the ranges, of memory besides these."""
    said = []
    for name in SLACK:
        values = [held_then[name] for held_then in history if name in held_then]
        if name == "mb":
            values = [mb - GRAPH_MB * held_then["graphs"]
                      for mb, held_then in zip(values, history)]
        if not values:
            continue
        before, after = max(values[:(len(values) + 1) // 2]), max(values[-(len(values) // 3 or 1):])
        assert after <= before + SLACK[name], (name, values)
        said.append(f"{name} {min(values)} to {max(values)}")
    return ", ".join(said)


def run(place, seconds, seed):
    """A line of figures. Raises AssertionError for what is wrong or grows."""
    world = World(RANKS[place], limit=seconds + 120)
    print(f"{place}, seed {seed}", flush=True)
    histories = world.run(keep_going_aloud, place, seconds, seed)
    world.close()
    flat = check_flat(histories[0])
    for history in histories[1:]:
        check_flat(history)
    pools = len(histories[0])
    return (f"{pools * STEPS} steps, {pools * STEPS // 5} of them evaluations, in {pools} pools of "
            f"{RANKS[place]}, {place}, seed {seed}: results right; {flat}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("place", choices=RANKS)
    parser.add_argument("seconds", nargs="?", type=float, default=60)
    parser.add_argument("seed", nargs="?", type=int, default=random.randrange(1 << 30))
    args = parser.parse_args()
    if reason := missing(args.place):
        print(f"skipped {args.place}: {reason}")
        return 0
    print(f"ok      {run(args.place, args.seconds, args.seed)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
