"""Training by method in one job: one model, and the same windows for every method but wlb.

    torchrun --standalone --nproc-per-node 2 benchmarks/gpu/train_methods.py \\
        --lengths data/mix.npy --oversize split --pool 2 --seq-len 64K --gbs 4 --steps 10

Takes the options of examples/train_qwen3.py but for those of the methods, --parallel, --json and
--trace, and --methods. Prints a JSON line a method. none, ulysses and wlb have no pools, so ranks
meet at the end of a step only, sequences in production order. "ideal" is none where nobody waits:
no gradients are exchanged, and a step counts as the mean of the ranks' times. All others begin a
step together and end it with the slowest; reading data counts for none. Memory is torch's peak and
what the process holds on the GPU besides, beyond what it held before the method: Libra's arenas,
and with the first method what cuDNN and NCCL keep for good.
"""

import copy
import json
import pathlib
import sys
import time

import torch
import torch.distributed as dist

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples"))

import libra  # noqa: E402
import train_qwen3 as example  # noqa: E402

ALONE = dict(attention="none", pool=1, grouping="production")
METHODS = {
    "ideal": ALONE,
    "none": ALONE,
    "ulysses": {**ALONE, "attention": "ulysses"},
    "wlb": {**ALONE, "packing": "wlb"},
    "libra-faithful": dict(attention="libra-faithful", grouping="vrsp", device_profile=None),
    "libra": dict(attention="libra"),
    "libra-keep": dict(attention="libra", backward="keep"),
    "libra-refetch": dict(attention="libra", backward="refetch"),
}


def arguments():
    parser = example.argument_parser()
    parser.add_argument("--methods", default="ideal,none,wlb,libra-faithful,libra")
    parser.add_argument("--warm-up", type=int, default=3, help="steps that are not timed")
    return parser.parse_args()


def arguments_of(method, args):
    own = copy.copy(args)
    vars(own).update({"packing": "fixed", **METHODS[method]})
    return own


def settle(device):
    """The time when all ranks have come here with nothing left to do."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    dist.barrier()
    return time.perf_counter()


def held_besides_gb():
    """On the GPU, by whatever but torch's allocator."""
    free, total = torch.cuda.mem_get_info()
    return (total - free - torch.cuda.memory_reserved()) / 1e9


def step_seconds(module, optimizer, batches, args, device, exchange):
    """This rank's, the tokens of all ranks, and the loss."""
    labels, tokens = example.labels_and_tokens(batches, args, device)
    begin = settle(device)
    loss = example.train_step(module, batches, labels, exchange)
    optimizer.step()
    optimizer.zero_grad()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - begin, tokens, example.summed([loss], device)[0] / labels


def over_ranks(seconds, device):
    """Mean and largest of each step."""
    mine = torch.tensor(seconds, dtype=torch.float64, device=device)
    largest = mine.clone()
    dist.all_reduce(largest, op=dist.ReduceOp.MAX)
    return [total / dist.get_world_size() for total in example.summed(mine, device)], \
        largest.tolist()


def same_on_all_ranks(module, optimizer):
    """Weights of rank 0, and no moments, which differ where no gradients were exchanged."""
    optimizer.state.clear()
    with torch.no_grad():
        for tensor in module.state_dict().values():
            dist.broadcast(tensor, 0)


def measure(method, module, optimizer, args, device):
    """A plain dict of a method's figures."""
    args = arguments_of(method, args)
    on_gpu = device.type == "cuda"
    if on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        besides = held_besides_gb()
    pool = libra.Pool(workers=args.pool * args.cp, device=device, measure=True)
    planner = example.make_planner(args, pool)
    sampler = example.make_sampler(args, planner)
    batches = example.endless_batches(args, sampler)
    seconds, tokens, waited = [], 0, 0.0
    for step in range(args.warm_up + args.steps):
        now = [example.on(device, next(batches)) for _ in range(sampler.microbatches)]
        own, step_tokens, loss = step_seconds(
            module, optimizer, now, args, device, exchange=method != "ideal")
        if step < args.warm_up:
            pool.metrics()
            waited = planner.waited_seconds
            continue
        seconds.append(own)
        tokens += step_tokens
    means, slowest = over_ranks(seconds, device)
    figures = {
        "method": method,
        "tokens_per_second": tokens / sum(means if method == "ideal" else slowest),
        "step_seconds": means if method == "ideal" else slowest,
        "slowest_over_mean": sum(slowest) / sum(means), "loss": loss,
        "planner_wait_seconds": planner.waited_seconds - waited, **pool.metrics()}
    if on_gpu:
        figures["peak_memory_gb"] = max_over_ranks(
            example.peak_memory_gb(device) + held_besides_gb() - besides, device)
    same_on_all_ranks(module, optimizer)
    pool.close()
    return figures


def max_over_ranks(value, device):
    return over_ranks([value], device)[1][0]


def compare(args, device):
    module = example.distribute(args, device)
    optimizer = torch.optim.AdamW(module.parameters(), lr=args.lr)
    ideal = None
    for method in args.methods.split(","):
        figures = measure(method, module, optimizer, args, device)
        if method == "ideal":
            ideal = figures["tokens_per_second"]
        if ideal:
            figures["of_ideal"] = figures["tokens_per_second"] / ideal
        if dist.get_rank() == 0:
            print(json.dumps(figures), flush=True)


def main():
    args = arguments()
    if unknown := set(args.methods.split(",")) - METHODS.keys():
        sys.exit(f"no such method: {', '.join(sorted(unknown))}; they are {', '.join(METHODS)}")
    if args.steps < 1 or args.warm_up < 0:
        sys.exit(f"--steps is {args.steps} and --warm-up {args.warm_up}: at least 1 and 0")
    if args.parallel != "ddp" or args.json or args.trace:
        sys.exit("methods are compared under DDP, on standard output: leave out --parallel, --json "
                 "and --trace")
    compare(args, example.start())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
