"""A tiny Qwen3-MoE of Megatron-Core with its experts on two ranks, which are a pool of two
replicas: expert all-to-alls, Libra's exchanges and the all-reduces of Megatron's DDP, which overlap
with the backward pass, take turns. On CPUs by test_megatron_experts.py, on GPUs by
megatron_checks.py.

    job = Job(samples=[[[48, 16], [8] * 8]], device=torch.device("cpu"), dtype=torch.float64)
    losses, gradients = train(job, pool, "balanced")     # on each of two ranks
"""

import contextlib
import random
import time
from dataclasses import dataclass

import torch
import torch.distributed as dist

import libra
from gpu_checks import attention_by_sample
from libra.integrations import megatron as adapter

RANKS = 2


@dataclass
class Job:
    samples: list  #: sample lengths, [microbatch][replica]
    device: torch.device
    dtype: torch.dtype
    tokens: int = 64  #: of a packed sequence
    layers: int = 3
    hidden: int = 32
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 8
    vocabulary: int = 61
    steps: int = 3
    rate: float = 0.2  #: of learning
    recompute: bool = False
    stagger: float = 0.0  #: each layer of each rank idles for up to so many seconds

    @property
    def exact(self):
        """The dtype of losses, of gradients added up and of weights between steps."""
        return torch.float64 if self.dtype == torch.float64 else torch.float32


class TorchAttention(torch.nn.Module):
    """Attention without Libra: each rank its own samples."""

    def __init__(self, **_):
        super().__init__()

    def forward(self, query, key, value, *_, packed_seq_params=None, **__):
        return attention_by_sample(query, key, value, packed_seq_params.samples).flatten(1)


def config_of(job):
    from megatron.core.transformer.transformer_config import TransformerConfig

    recompute = dict(recompute_granularity="full", recompute_method="uniform",
                     recompute_num_layers=1)
    return TransformerConfig(
        num_layers=job.layers, hidden_size=job.hidden, num_attention_heads=job.heads,
        num_query_groups=job.kv_heads, kv_channels=job.head_dim, ffn_hidden_size=job.hidden,
        use_cpu_initialization=True, params_dtype=job.dtype, bf16=job.dtype == torch.bfloat16,
        attention_dropout=0.0, hidden_dropout=0.0, add_bias_linear=False, normalization="RMSNorm",
        qk_layernorm=True, gated_linear_unit=True, activation_func=torch.nn.functional.silu,
        apply_rope_fusion=False, num_moe_experts=4, moe_ffn_hidden_size=job.hidden,
        moe_router_topk=2, moe_aux_loss_coeff=1e-3, moe_grouped_gemm=False,
        moe_router_dtype="fp64" if job.dtype == torch.float64 else "fp32",
        moe_token_dispatcher_type="alltoall", expert_model_parallel_size=RANKS,
        **(recompute if job.recompute else {}))


def model_of(job, core_attention):
    """The model in Megatron's DDP, with buckets enough for several all-reduces a backward pass."""
    from megatron.core import parallel_state
    from megatron.core.distributed import (DistributedDataParallel,
                                           DistributedDataParallelConfig)
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.transformer.moe import moe_utils

    # Without Transformer Engine 0.16.1 lacks the name, and asks whether it is None.
    vars(moe_utils).setdefault("te_general_gemm", None)
    if not parallel_state.model_parallel_is_initialized():
        parallel_state.initialize_model_parallel(expert_model_parallel_size=RANKS)
    config = config_of(job)
    spec = adapter.use_libra(get_gpt_layer_local_spec(
        num_experts=4, qk_layernorm=True, normalization="RMSNorm"))
    spec.submodules.self_attention.submodules.core_attention = core_attention
    model = GPTModel(config, spec, vocab_size=job.vocabulary, max_sequence_length=job.tokens,
                     position_embedding_type="rope", rotary_base=1000000, parallel_output=False,
                     share_embeddings_and_output_weights=False)
    initialise(model)
    if job.stagger:
        stagger(job, model.decoder.layers)
    return DistributedDataParallel(
        config, DistributedDataParallelConfig(
            overlap_grad_reduce=True, grad_reduce_in_fp32=job.exact == torch.float32,
            bucket_size=sum(p.numel() for p in model.parameters()) // (2 * job.layers)),
        model.to(device=job.device, dtype=job.dtype))


def initialise(model):
    """Weights of bf16 numbers, whatever the dtype, and the same for each attention; each rank's
    experts have their own."""
    common, experts = (torch.Generator().manual_seed(seed) for seed in (3, 4 + dist.get_rank()))
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:  # not a norm's
            is_expert = not getattr(parameter, "allreduce", True)
            drawn = torch.randn(parameter.shape, generator=experts if is_expert else common)
            width = 1 if name.startswith("embedding") else parameter.shape[1]
            parameter.data = (drawn / width ** 0.5).bfloat16()


def stagger(job, layers):
    """Before each layer a pause of random length, other on each rank: on GPUs of the stream."""
    lengths = random.Random(dist.get_rank())

    def pause(*_):
        seconds = lengths.random() * job.stagger
        if job.device.type == "cuda":
            torch.cuda._sleep(int(seconds * 1.9e9))  # cycles
        else:
            time.sleep(seconds)

    for layer in layers:
        layer.register_forward_pre_hook(pause)


def microbatches_of(job, pool, placer):
    """(tokens, labels, positions, PackedSeqParams) of this rank, by microbatch; and the plans."""
    options = libra.PlanOptions(
        q_heads=job.heads, kv_heads=job.kv_heads, head_dim=job.head_dim, placer=placer,
        dtype={torch.float64: "fp64"}.get(job.dtype, "bf16"),
        block_tokens=max(8, job.tokens // 16), head_shards=2, chunks=2)
    plans, microbatches = [], []
    for number, of_replicas in enumerate(job.samples):
        plans.append(pool.plan(options, [libra.PackedSequence(job.tokens, s)
                                         for s in of_replicas]))
        params = adapter.packed_seq_params(plans[-1], "thd")
        params.samples = of_replicas[pool.worker]
        sizes = [*params.samples, job.tokens - sum(params.samples)]
        drawn = torch.randint(0, job.vocabulary, (2, job.tokens), generator=torch.Generator()
                              .manual_seed(RANKS * number + pool.worker)).to(job.device)
        positions = torch.cat([torch.arange(n) for n in sizes]).to(job.device)
        microbatches.append((drawn[:1], drawn[1], positions[None], params))
    return microbatches, plans


def train(job, pool, placer, core_attention=adapter.CoreAttention):
    """Losses [step, microbatch, token] of this rank, and the gradients of the first and last step,
    by parameter; plain descent on weights that are kept in `job.exact`."""
    model = model_of(job, core_attention)
    microbatches, plans = microbatches_of(job, pool, placer)
    assert (sum(plan.core.tiles_moved for plan in plans) > 0) == (placer == "balanced")
    parameters = list(model.parameters())
    weights = [p.detach().to(job.exact, copy=True) for p in parameters]
    losses, gradients = [], []
    for step in range(job.steps):
        losses.append(step_of(job, model, microbatches))
        if step in (0, job.steps - 1):
            gradients.append([p.main_grad.clone() for p in parameters])
        with torch.no_grad():
            for parameter, weight in zip(parameters, weights):
                parameter.copy_(weight.sub_(parameter.main_grad, alpha=job.rate))
    return torch.stack(losses), gradients


def step_of(job, model, microbatches):
    """Losses of the microbatches; their gradients are in main_grad, the mean over all tokens."""
    model.zero_grad_buffer()
    losses = []
    for number, (tokens, labels, positions, params) in enumerate(microbatches):
        last = number == len(microbatches) - 1
        with contextlib.nullcontext() if last else model.no_sync():
            logits = model(tokens, positions, None, packed_seq_params=params)
            loss = torch.nn.functional.cross_entropy(
                logits[0].to(job.exact), labels, reduction="none")
            (loss.mean() / len(microbatches)).backward()
        losses.append(loss.detach())
    model.finish_grad_sync()
    return torch.stack(losses)
