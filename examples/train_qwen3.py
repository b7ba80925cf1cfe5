"""Trains a stock Transformers Qwen3 from random weights on packed sequences of real lengths.

    torchrun --standalone --nproc-per-node 8 examples/train_qwen3.py --lengths data/mix.npy \
        --oversize split --seq-len 64K --gbs 16 --cp 2 --pool 4 --attention libra

On GPUs in bf16, without them on gloo; in a minute on a laptop:

    torchrun --standalone --nproc-per-node 2 examples/train_qwen3.py --lengths data/mix.npy \
        --oversize split --seq-len 512 --gbs 4 --pool 2 --hidden 32 --layers 2 --heads 4 \
        --kv-heads 2 --head-dim 8 --vocabulary 61 --block 64 --chunks 1 --steps 6

Documents have made-up tokens that count on, so there is something to learn. Every step prints its
loss, balance, exposed communication, wait for plans, tokens/s/GPU (padding is no token) and peak
memory; --json writes them as JSON lines.
"""

import argparse
import itertools
import json
import os
import resource
import time

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset
from transformers import AutoModelForCausalLM, Qwen3Config, Qwen3MoeConfig

import libra
import libra.integrations.transformers


def size(text):
    try:
        return libra.parse_size(text)
    except libra.ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def argument_parser():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--lengths", required=True, help="what libra.read_lengths takes")
    add("--oversize", default="error", help="documents longer than --seq-len: error, truncate, "
        "split or drop")
    add("--seq-len", type=size, default=size("64K"), help="tokens of a packed sequence")
    add("--gbs", type=int, default=8, help="packed sequences of a step")
    add("--cp", type=int, default=1, help="ranks that share a sequence")
    add("--pool", type=int, default=1, help="P, replicas that balance among themselves")
    add("--attention", default="libra", choices=["libra", "libra-faithful", "ulysses", "none"])
    add("--packing", default="fixed", choices=["fixed", "wlb"], help="fixed: sequences of "
        "--seq-len tokens; wlb: of like work, as WLB-LLM, which changes the samples of a step")
    add("--grouping", default="vrsp_refined", help="which sequences of a step meet in a pool: "
        "vrsp_refined, vrsp or production")
    add("--backward", default="keep", choices=["keep", "refetch"], help="what was fetched stays "
        "until the backward pass, or is fetched again: slower links, or less memory")
    add("--device-profile", help="balance seconds on this device (h200, or a file of `libra "
        "calibrate`), not FLOPs")
    add("--tau", type=float, default=0.03, help="excess over the mean work that is "
        "no cause to move")
    add("--home", default="contiguous", help="contiguous, zigzag-row or zigzag-document")
    add("--block", type=size, default=4096, help="most tokens of a tile")
    add("--chunks", type=int, default=2, help="head chunks of the exchange (libra-faithful: 4)")
    add("--parallel", default="ddp", choices=["ddp", "fsdp2"])
    add("--hidden", type=int, default=2048)
    add("--layers", type=int, default=4)
    add("--heads", type=int, default=32)
    add("--kv-heads", type=int, default=8)
    add("--head-dim", type=int, default=128)
    add("--experts", type=int, default=0, help="above 0: Qwen3-MoE, 2 experts a token")
    add("--vocabulary", type=int, default=151936)
    add("--dtype", default=None, choices=["bf16", "fp32", "fp64"], help="bf16 on GPUs, else fp32")
    add("--loss-rows", type=size, default=2048, help="rows whose logits are there at once")
    add("--checkpointing", action="store_true", help="recompute layers in backward")
    add("--steps", type=int, default=20)
    add("--lr", type=float, default=1e-3)
    add("--seed", type=int, default=0)
    add("--json", help="a file for a JSON line a step, of rank 0")
    add("--trace", help="a timeline of the last step, of rank 0, for Perfetto")
    return parser


class MadeUpDocuments(Dataset):
    def __init__(self, lengths, vocabulary):
        self.lengths, self.vocabulary = lengths, vocabulary

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, index):
        return (7 * index + 3 * torch.arange(int(self.lengths[index]))) % self.vocabulary


class SummedLoss(torch.nn.Module):
    """The model with its loss, summed over this rank's labels, some rows' logits at a time."""

    def __init__(self, model, rows):
        super().__init__()
        self.model, self.rows = model, rows

    def forward(self, batch):
        hidden = self.model.model(
            input_ids=batch["input_ids"], position_ids=batch["position_ids"],
            libra_plan=batch["libra_plan"], use_cache=False).last_hidden_state[0]
        pairs = zip(hidden.split(self.rows), batch["labels"][0].split(self.rows))
        return sum(checkpoint(self.loss, h, labels, use_reentrant=False) for h, labels in pairs)

    def loss(self, hidden, labels):
        logits = self.model.lm_head(hidden)
        logits = logits if logits.dtype == torch.float64 else logits.float()
        return torch.nn.functional.cross_entropy(logits, labels, reduction="sum")


def model_dtype(args, device):
    return {"bf16": torch.bfloat16, "fp32": torch.float32, "fp64": torch.float64,
            None: torch.bfloat16 if device.type == "cuda" else torch.float32}[args.dtype]


def make_model(args, device):
    shape = dict(vocab_size=args.vocabulary, hidden_size=args.hidden,
                 intermediate_size=3 * args.hidden, num_hidden_layers=args.layers,
                 num_attention_heads=args.heads, num_key_value_heads=args.kv_heads,
                 head_dim=args.head_dim, max_position_embeddings=args.seq_len)
    if args.experts:
        config = Qwen3MoeConfig(**shape, num_experts=args.experts, num_experts_per_tok=2,
                                moe_intermediate_size=args.hidden)
    else:
        config = Qwen3Config(**shape)
    libra.integrations.transformers.register()
    torch.manual_seed(args.seed)
    with device:
        model = AutoModelForCausalLM.from_config(config, attn_implementation="libra",
                                                 dtype=model_dtype(args, device))
    if args.checkpointing:
        model.gradient_checkpointing_enable()
    return model.train()


def equal_cost_tokens(args):
    """The length at which a sample's attention costs as much as its linear layers."""
    projections = 2 * (args.heads + args.kv_heads) * args.head_dim
    width = 2 * args.hidden + args.experts / 3 if args.experts else 3 * args.hidden
    parameters = args.hidden * (projections + 3 * width)
    return 2 * parameters / (args.heads * 2 * args.head_dim)


def distribute(args, device):
    module = SummedLoss(make_model(args, device), args.loss_rows)
    if args.parallel == "fsdp2":
        for layer in module.model.model.layers:
            fully_shard(layer)
        return fully_shard(module)
    return DistributedDataParallel(
        module, device_ids=[device.index] if device.type == "cuda" else None)


def plan_options(args, dtype):
    """All methods run on the same runtime; they differ in who computes what."""
    name = {torch.bfloat16: "bf16", torch.float32: "fp32", torch.float64: "fp64"}[dtype]
    ulysses = args.attention == "ulysses"
    options = libra.PlanOptions(
        q_heads=args.heads, kv_heads=args.kv_heads, head_dim=args.head_dim, dtype=name,
        cp=args.cp, home=args.home, block_tokens=args.block, chunks=args.chunks, tau=args.tau,
        backward=args.backward, head_shards=args.cp if ulysses else 2,
        placer={"libra": "balanced", "libra-faithful": "paper"}.get(args.attention, args.attention))
    return options.faithful() if args.attention == "libra-faithful" else options


def make_planner(args, pool):
    return libra.Planner(pool, plan_options(args, model_dtype(args, pool.device)),
                         device_profile=args.device_profile)


def make_sampler(args, planner):
    return libra.PooledBatchSampler(
        args.lengths, seq_len=args.seq_len, gbs=args.gbs, pool_size=args.pool, planner=planner,
        grouping=args.grouping, oversize=args.oversize, keep_empty=False, seed=args.seed,
        **(dict(packing="wlb", equal_cost_tokens=equal_cost_tokens(args))
           if args.packing == "wlb" else {}))


def endless_batches(args, sampler):
    loader = DataLoader(
        libra.PackedDataset(MadeUpDocuments(libra.read_lengths(args.lengths), args.vocabulary)),
        batch_sampler=sampler, collate_fn=libra.Collator())
    for epoch in itertools.count():
        sampler.set_epoch(epoch)
        yield from loader


def on(device, batch):
    return {name: value.to(device, non_blocking=True) if torch.is_tensor(value) else value
            for name, value in batch.items()}


def labels_and_tokens(batches, args, device):
    """Of all ranks."""
    return summed([sum(int((b["labels"] != -100).sum()) for b in batches),
                   sum(int(b["cu_seqlens"][-1]) for b in batches) / args.cp], device)


def train_step(module, batches, total_labels, exchange=True):
    """The summed loss. Gradients are averaged over ranks, hence the factor; they are exchanged with
    the last microbatch."""
    loss_sum = 0.0
    for number, batch in enumerate(batches):
        last = exchange and number == len(batches) - 1
        if hasattr(module, "require_backward_grad_sync"):
            module.require_backward_grad_sync = last
        else:
            module.set_requires_gradient_sync(last)
        loss = module(batch)
        (loss * dist.get_world_size() / total_labels).backward()
        loss_sum += loss.detach().double()
    return loss_sum


def summed(values, device):
    total = torch.as_tensor(values, dtype=torch.float64, device=device).clone()
    dist.all_reduce(total)
    return total.tolist()


def own_device():
    return torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())


def shares_gpus():
    """More ranks than GPUs, which NCCL refuses: to try things, not to be fast."""
    return int(os.environ["LOCAL_WORLD_SIZE"]) > torch.cuda.device_count()


def peak_memory_gb(device):
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated() / 1e9
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def line_of(figures, steps):
    line = (f"step {figures['step'] + 1}/{steps}  loss {figures['loss']:.4f}  "
            f"{figures['seconds']:.2f} s  "
            f"{figures['tokens_per_second_per_rank']:.0f} tokens/s/rank  "
            f"slowest {figures['libra/skew']:.2f} -> {figures['libra/balance']:.2f}  "
            f"exposed {figures['libra/exposed_seconds']:.3f} s  "
            f"planner wait {figures['libra/planner_wait_seconds']:.3f} s  "
            f"peak {figures['peak_memory_gb']:.1f} GB")
    if "libra/wlb_waiting_tokens" in figures:
        line += f"  {figures['libra/wlb_waiting_tokens']} tokens wait for later steps"
    return line


def train(args, device):
    pool = libra.Pool(workers=args.pool * args.cp, device=device, measure=True)
    planner = make_planner(args, pool)
    sampler = make_sampler(args, planner)
    batches = endless_batches(args, sampler)
    module = distribute(args, device)
    optimizer = torch.optim.AdamW(module.parameters(), lr=args.lr)
    if args.packing == "wlb" and dist.get_rank() == 0:
        print("packing wlb: steps train on other samples than with fixed; those of more work than "
              "the mean sequence wait until there is one for each sequence", flush=True)
    log = open(args.json, "w", encoding="utf-8") if args.json and dist.get_rank() == 0 else None

    for step in range(args.steps):
        begin = time.perf_counter()
        step_batches = [on(device, next(batches)) for _ in range(sampler.microbatches)]
        labels, tokens = labels_and_tokens(step_batches, args, device)
        if args.trace and step == args.steps - 1 and dist.get_rank() == 0:
            with libra.profile(pool, args.trace):
                loss = train_step(module, step_batches, labels)
        else:
            loss = train_step(module, step_batches, labels)
        optimizer.step()
        optimizer.zero_grad()
        loss = summed([loss], device)[0] / labels
        seconds = time.perf_counter() - begin
        figures = {
            "step": step, "loss": loss, "seconds": seconds,
            "tokens": tokens, "peak_memory_gb": peak_memory_gb(device),
            "tokens_per_second_per_rank": tokens / seconds / dist.get_world_size(),
            **pool.metrics(), **planner.metrics(), **sampler.metrics()}
        if dist.get_rank() == 0:
            print(line_of(figures, args.steps), flush=True)
        if log:
            print(json.dumps(figures), file=log, flush=True)
    pool.close()


def start():
    """This rank's device, in a job that has begun."""
    on_gpu = torch.cuda.is_available()
    device = own_device() if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("gloo" if not on_gpu or shares_gpus() else "nccl")
    return device


def main():
    args = argument_parser().parse_args()
    train(args, start())
    dist.destroy_process_group()  # without the model, whose DDP would end it holding the GIL


if __name__ == "__main__":
    main()
