"""What must hold beside Megatron-Core's expert parallelism on GPUs, in bf16, between two processes:
over NCCL with a GPU each, or over gloo where they share one. Run by test_gpu.py, or as a program:

    PYTHONPATH=build/gpu/python python3 python/tests/megatron_checks.py [name...]

Hundreds of passes of attention, forward and backward, lie among as many expert all-to-alls, with
all-reduces of gradients beside them and ranks that keep coming at other times. A rank that is not
done in time says where it stands, and ends.
"""

import dataclasses
import faulthandler
import functools
import importlib.util
import sys

import torch

import libra
import worlds
from experts import RANKS, Job, TorchAttention, train
from gpu_checks import check_each, own_device

LIMIT_SECONDS = worlds.LIMIT_SECONDS - 10

SAMPLES = [  # [microbatch][replica]
    [[4096], [256] * 16],
    [[128] * 30, [4000]],
    [[3000, 1000], [1024] * 4],
    [[40] * 50, [2048, 1, 0, 2047]],
]


def rms(tensor):
    return float(tensor.double().square().mean().sqrt())


def errors(outcome, right):
    """Of each token's loss, root mean square over the first and over all steps; and of the
    gradients of the first and last step: by parameter relative to its size, the mean over
    parameters."""
    (losses, gradients), (right_losses, right_gradients) = outcome, right
    off = losses.double() - right_losses
    found = {"first losses": rms(off[0]), "losses": rms(off)}
    for name, of_step, right_of_step in zip(("first gradients", "last gradients"), gradients,
                                            right_gradients):
        relative = [rms(g.double() - r) / rms(r) for g, r in zip(of_step, right_of_step)]
        found[name] = sum(relative) / len(relative)
    return found


def judge(job, pool):
    """Trained with and without balance, errors against fp32 are at most twice those of torch's own
    attention in bf16, as gpu_checks.py judges, and so are the differences between the two; returns
    them all."""
    right = train(dataclasses.replace(job, dtype=torch.float32), pool, "none", TorchAttention)
    assert right[0][-1].mean() < right[0][0].mean(), "nothing was learnt"
    torchs = train(job, pool, "none", TorchAttention)
    none, balanced = (train(job, pool, placer) for placer in ("none", "balanced"))
    said = {"torch": errors(torchs, right), "none": errors(none, right),
            "balanced": errors(balanced, right), "none to balanced": errors(balanced, none)}
    for kind, of_kind in said.items():
        for name, error in of_kind.items():
            assert error <= 2 * said["torch"][name], (kind, name, said)
    return said


def experts(transport="auto", recompute=False):
    faulthandler.dump_traceback_later(LIMIT_SECONDS, exit=True)
    torch.cuda.set_device(own_device())
    pool = libra.Pool(device=own_device(), deadline=60.0, transport=transport)
    said = judge(Job(SAMPLES, own_device(), torch.bfloat16, tokens=4096, layers=8, hidden=512,
                     heads=8, kv_heads=2, head_dim=128, vocabulary=1024, steps=12,
                     recompute=recompute, stagger=1e-3), pool)
    torch.cuda.synchronize()
    pool.close()
    faulthandler.cancel_dump_traceback_later()
    return {kind: {name: float(f"{value:.3g}") for name, value in of_kind.items()}
            for kind, of_kind in said.items()}


def queues(number):
    """CUDA's hardware queues: 8 unless told; Megatron's scripts often want one."""
    return {"CUDA_DEVICE_MAX_CONNECTIONS": str(number)}


CHECKS = {  # name: (environment, arguments of experts)
    "Megatron experts": (queues(32), {}),
    "Megatron experts, recompute": (queues(32), dict(recompute=True)),
    "Megatron experts, one queue": (queues(1), {}),
    "Megatron experts, 8 queues": (queues(8), {}),
}

NCCL_CHECKS = {  # the exchange over NCCL, too
    "Megatron experts, NCCL": ({**queues(32), "NCCL_LAUNCH_ORDER_IMPLICIT": "1"},
                               dict(transport="nccl")),
}


def check(name):
    """On a fresh job of two ranks; returns the errors that rank 0 found."""
    environment, arguments = {**CHECKS, **NCCL_CHECKS}[name]
    backend = "nccl" if torch.cuda.device_count() >= RANKS else "gloo"
    world = worlds.World(RANKS, backend, environment)
    try:
        return world.run(functools.partial(experts, **arguments))[0]
    finally:
        world.close()


def why_not():
    """What is missing here, or ""."""
    if importlib.util.find_spec("megatron") is None:
        return "needs megatron-core"
    return "" if torch.cuda.is_available() else "needs a GPU"


def main(names):
    if why_not():
        print(f"skipped: {why_not()}")
        return 0
    several = torch.cuda.device_count() >= RANKS
    return check_each(names or [*CHECKS, *(NCCL_CHECKS if several else [])],
                      [*CHECKS, *NCCL_CHECKS], check)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
