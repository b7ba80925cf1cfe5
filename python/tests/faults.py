"""Ranks that are killed, stopped, misled or give up at a random moment: every survivor raises an
error that says who, whom, where and when, or why, within the deadline, lets its process group go
and can exit; what it was given is NaN or right; no process and nothing in shared memory is left.
Run by test_fault_scenarios.py, or as a program where there is no pytest:

    PYTHONPATH=build/gpu/python python3 python/tests/faults.py cpu|peer|nccl|cuda [COUNT] [SEED]

peer and nccl: between GPUs, which ranks share under peer if there are too few; cuda: both in turn.
--ranks, --kind and --deadline set what the seed draws otherwise.
"""

import argparse
import itertools
import os
import random
import re
import signal
import statistics
import sys
import threading
import time
from dataclasses import dataclass, replace

import torch
import torch.distributed as dist

import libra
from pools import Case, shard_of, skewed
from worlds import World

DEADLINE = 5.0  # seconds: passes that succeed take less, on a busy machine too
SOON = 40.0  # after the fault, on a busy machine too
SAID = re.compile(r"step \d+, (agreement on the plan|(forward|backward) (dispatch|return|pass)|"
                  r"gradient return)")
KINDS = {"cpu": ["kill", "stop", "fail"] * 2 + ["plan"], "cuda": ["kill", "stop"] * 3 + ["plan"]}
REASON = "no more tensors"  # of a rank that gives up
SHAPES = {  # query heads, KV heads, dimensions of keys and values
    "cpu": [(8, 4, 16, 16)],
    "cuda": [(8, 2, 128, 128), (8, 8, 64, 64), (16, 4, 80, 80), (4, 4, 192, 192), (8, 4, 256, 256)],
}


@dataclass
class Fault:
    """What a seed draws."""
    size: int
    odd: int  # the rank that does it
    kind: str
    when: str
    delay: float
    shape: tuple
    ahead: int  # passes that the host enqueues before it waits for a GPU
    deadline: float = DEADLINE


def fault_of(seed, place, **given):
    """`given`: fields that are not drawn."""
    device = "cpu" if place == "cpu" else "cuda"
    rng, size = random.Random(seed), given.get("size", size_of(seed, place))
    drawn = Fault(size, rng.randrange(size), rng.choice(KINDS[device]),
                  rng.choice(["before", "during", "during", "after"]), rng.uniform(0, 0.3),
                  rng.choice(SHAPES[device]), rng.choice([1, 1, 4]))
    return replace(drawn, **given)


def size_of(seed, place):
    sizes = [2, 3] if place != "nccl" or torch.cuda.device_count() > 2 else [2]
    return sizes[seed % len(sizes)]


def missing(place):
    """Why there can be no scenario at this place; "" if there can."""
    gpus = torch.cuda.device_count()
    if place != "cpu" and gpus == 0:
        return "no GPU that torch can use"
    if place == "nccl" and gpus < 2:
        return "NCCL needs a GPU a rank, and there is one"
    return ""


class Rank:
    """This process's pool, plan and tensors; `odd`: it holds another plan."""

    def __init__(self, fault, place, odd):
        self.device, transport = torch.device("cpu"), "auto"
        if place != "cpu":
            self.device = torch.device("cuda", dist.get_rank() % torch.cuda.device_count())
            torch.cuda.set_device(self.device)
            transport = place
        self.pool = libra.Pool(deadline=fault.deadline, device=self.device, transport=transport)
        case = case_of(fault, place)
        self.plan = self.pool.plan(case.plan_options(**(dict(tau=0.5) if odd else {})),
                                   case.sequences())
        self.dtype = torch.float64 if place == "cpu" else torch.bfloat16
        self.shard = shard_of(case, self.plan, dtype=self.dtype, device=self.device)

    def attend(self, number):
        """Pass `number`, forward and then backward. No two in turn have the same results, so that
        what was left by the one before would be seen."""
        v_scale, d_scale = 2 ** (number % 5), 2 ** (number % 3)
        shard = self.shard
        inputs = [t.detach().clone().requires_grad_() for t in (shard.q, shard.k,
                                                                shard.v * v_scale)]
        out = libra.attention(*inputs, plan=self.plan)
        yield [(out, shard.out * v_scale)]
        out.backward(shard.d_out * d_scale)
        scales = (v_scale * d_scale, v_scale * d_scale, d_scale)
        yield [(t.grad, right * scale)
               for t, right, scale in zip(inputs, (shard.dq, shard.dk, shard.dv), scales)]

    def wait(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def judge(self, results, may_fail):
        """Each element is right, or NaN where the pass may have failed."""
        self.wait()
        allowed = 1e-10 if self.dtype == torch.float64 else 0.05
        for got, right in results:
            error = (got.detach().double() - right).abs()
            wrong = ~(error <= allowed * right.abs().max())
            if may_fail:
                wrong &= ~got.isnan()
            assert not wrong.any(), f"{int(wrong.sum())} elements are wrong, by {error.max()}"


def case_of(fault, place):
    if place == "cpu":
        return Case(fault.size, shape=fault.shape, samples=skewed(fault.size),
                    options=dict(tau=0.0))
    samples = itertools.cycle([[2048], [256] * 7 + [100, 0, 1, 1], [1500, 548]])
    samples = list(itertools.islice(samples, fault.size))
    return Case(fault.size, shape=fault.shape, tokens=2048, samples=[samples],
                options=dict(tau=0.0, dtype="bf16", block_tokens=256))


def suffer(fault, place):
    """What the rank says, and how long after the fault; the odd one does what the fault says."""
    is_odd = dist.get_rank() == fault.odd
    rank = Rank(fault, place, is_odd and fault.kind == "plan")
    begin, results = time.monotonic(), []
    try:
        for number in itertools.count():
            assert time.monotonic() < begin + SOON, "nothing was raised"
            if is_odd and fault.kind != "plan":
                strike(fault, number, rank.pool)
            for part, of_pass in enumerate(rank.attend(number)):
                if part == 0 and number % fault.ahead == 0:
                    rank.judge(results, may_fail=False)  # or this call had raised
                    results = []
                results += of_pass
            if number % fault.ahead == fault.ahead - 1:
                rank.wait()
            if number == 1:
                begin = time.monotonic()
    except libra.Error as error:
        message = f"{type(error).__name__}: {error}"
    seconds = time.monotonic() - begin
    rank.judge(results, may_fail=True)
    _held.append(rank)
    return message, seconds


_held = []  # what a rank has until all know: a pool that is closed tells others, too


def let_go():
    _held.pop().pool.close()
    dist.destroy_process_group()


def strike(fault, number, pool):
    if number != (0 if fault.when == "before" else 2):
        return
    act, args = {"kill": (os.kill, (os.getpid(), signal.SIGKILL)),
                 "stop": (os.kill, (os.getpid(), signal.SIGSTOP)),
                 "fail": (pool._core.abort, (REASON,))}[fault.kind]
    if fault.when == "during":  # in the middle of whatever comes
        threading.Timer(fault.delay, act, args).start()
    else:
        act(*args)


def shared_memory():
    """What is there, but for what is Python's and the GPU driver's."""
    return {name for name in os.listdir("/dev/shm") if not name.startswith(("sem.mp-", "cuda."))}


def run_scenario(seed, place="cpu", **given):
    """Seconds from the fault to the last survivor's error."""
    fault = fault_of(seed, place, **given)
    world = World(fault.size)
    processes = [process for process, _ in world._ranks]
    for _, pipe in world._ranks:
        pipe.send((suffer, (fault, place)))
    survivors = [rank for rank in range(fault.size)
                 if rank != fault.odd or fault.kind in ("plan", "fail")]
    answers = {rank: world._answer(rank) for rank in survivors}
    for rank in survivors:
        world._ranks[rank][1].send((let_go, ()))
    let_go_answers = [world._answer(rank) for rank in survivors]
    if fault.kind == "stop":
        processes[fault.odd].kill()
    world.close()
    for rank, process in enumerate(processes):
        process.join(SOON)
        assert not process.is_alive(), f"rank {rank} is left"
        assert process.exitcode == 0 or rank not in survivors, f"rank {rank} did not exit in peace"
    for _, raised in let_go_answers:
        assert raised == "", raised
    slowest = 0.0
    for rank, (answer, raised) in answers.items():
        assert raised == "", raised
        message, seconds = answer
        check(message, rank, fault.kind)
        assert seconds < SOON
        slowest = max(slowest, seconds)
    return slowest


def check(message, rank, kind):
    if kind == "plan":
        assert message.startswith("PlanError: ") and "hold different plans" in message, message
        return
    assert message.startswith("TransportError: "), message
    if kind == "fail":
        assert REASON in message, message
        return
    assert SAID.search(message), message
    named = {int(n) for n in re.findall(r"workers? (\d+)", message)}
    assert rank in named and len(named) > 1, message


def run_scenarios(count, seed, place="cpu", **given):
    """A line of figures. Raises AssertionError for the first that does not end as it must."""
    before, times = shared_memory(), []
    for number in range(seed, seed + count):
        try:
            times.append(run_scenario(number, place, **given))
        except BaseException:
            print(f"scenario of seed {number}, {place}: {fault_of(number, place, **given)}",
                  flush=True)
            raise
    end = time.monotonic() + 60  # other jobs may run beside this one: what they have there goes
    while not shared_memory() <= before and time.monotonic() < end:
        time.sleep(1)
    assert shared_memory() <= before, shared_memory() - before
    deadline = given.get("deadline", DEADLINE)
    late = sum(seconds >= deadline for seconds in times)
    return (f"{count} scenarios, {place}, from seed {seed}: median time to the last survivor's "
            f"error {statistics.median(times):.2f} s, longest {max(times):.2f} s, deadline "
            f"{deadline} s, at which it was {late} times")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("place", choices=["cpu", "peer", "nccl", "cuda"])
    parser.add_argument("count", nargs="?", type=int, default=20)
    parser.add_argument("seed", nargs="?", type=int, default=0)
    parser.add_argument("--ranks", type=int, dest="size")
    parser.add_argument("--kind", choices=["kill", "stop", "fail", "plan"])
    parser.add_argument("--deadline", type=float)
    args = parser.parse_args()
    given = {name: getattr(args, name) for name in ("size", "kind", "deadline")
             if getattr(args, name) is not None}
    failed = 0
    for each in ["peer", "nccl"] if args.place == "cuda" else [args.place]:
        if reason := missing(each):
            print(f"skipped {each}: {reason}", flush=True)
            continue
        try:
            print(f"ok      {run_scenarios(args.count, args.seed, each, **given)}", flush=True)
        except AssertionError as error:
            failed += 1
            print(f"FAILED  {each}: {error}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
