"""Hugging Face Transformers: `attn_implementation="libra"` for stock models.

    libra.integrations.transformers.register()
    model = AutoModelForCausalLM.from_config(config, attn_implementation="libra")
    model(**batch, use_cache=False)          # of libra.Collator: libra_plan travels with it

The plan's id comes as the model's keyword `libra_plan`, and goes with the layer's arguments through
recompute, pipelines and evaluation. Models whose layers take keywords to their attention function:
Qwen3, Qwen3-MoE, Llama and most others.
"""

import functools

import torch

from libra import _core
from libra._attention import attention
from libra._tensors import dtype_name


def register(name="libra", *, from_positions=False):
    """Makes `attn_implementation=name` known, with a mask function that makes no mask.

    from_positions: without a `libra_plan`, take the samples from position_ids (a new one wherever
    they begin with 0) and compute on this rank alone: for evaluation, and where P * CP is 1. Never
    for shards of a sequence. Otherwise a missing plan is an error.
    """
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface

    AttentionInterface.register(name, functools.partial(_attend, from_positions))
    AttentionMaskInterface.register(name, _no_mask)


def _attend(from_positions, module, query, key, value, attention_mask, scaling=None, dropout=0.0,
            sliding_window=None, softcap=None, libra_plan=None, position_ids=None, **kwargs):
    """query [1, q_heads, rows, d], key, value [1, kv_heads, rows, d] -> [1, rows, q_heads, d]."""
    _check(query, attention_mask, dropout, sliding_window, softcap, kwargs)
    q, k, v = (t[0].transpose(0, 1) for t in (query, key, value))
    if libra_plan is None:
        if not from_positions:
            raise _core.ConfigError(
                "no plan for this microbatch: pass libra_plan to the model (libra.Collator's "
                "batches have it), or register(from_positions=True)")
        libra_plan = _local_plan(_samples_of(position_ids, q.shape[0]), q, k, v)
    return attention(q, k, v, plan=libra_plan, scale=scaling)[None], None


def _check(query, attention_mask, dropout, sliding_window, softcap, kwargs):
    wrong = None
    if query.shape[0] != 1:
        wrong = f"a batch of {query.shape[0]}: a microbatch is one packed sequence, [1, tokens]"
    elif attention_mask is not None:
        wrong = "an attention mask: samples of a packed sequence need none"
    elif dropout:
        wrong = f"attention dropout of {dropout}: set attention_dropout to 0"
    elif sliding_window is not None or softcap is not None or kwargs.get("s_aux") is not None:
        wrong = "a sliding window, softcap or attention sink: only full causal attention is there"
    elif kwargs.get("is_causal") is False:
        wrong = "attention that is not causal"
    if wrong:
        raise _core.ConfigError(f"attn_implementation libra does not take {wrong}")


def _no_mask(batch_size, q_length, kv_length, *args, attention_mask=None, **kwargs):
    """Packed samples need no mask; what tells padding apart in a batch is refused by `_check`."""
    if attention_mask is not None and not bool(attention_mask.all()):
        return attention_mask
    return None


def _samples_of(position_ids, rows):
    """Sample lengths; zeros at the end, beyond the first, are padding."""
    if position_ids is None:
        return (rows,)
    positions = position_ids.reshape(-1)
    if len(positions) != rows or positions[0] != 0:
        raise _core.ConfigError(
            f"position_ids {list(position_ids.shape)} do not begin a packed sequence of {rows} "
            "tokens: shards of one need a libra_plan")
    begins = positions[1:] == 0
    if not bool((begins | (positions[1:] == positions[:-1] + 1)).all()):
        raise _core.ConfigError(
            "position_ids do not count on within a sample, as in zigzag shards of a sequence: "
            "these need a libra_plan")
    starts = (positions == 0).nonzero().flatten().tolist()
    last = rows
    while len(starts) > 1 and starts[-1] == last - 1 and starts[-2] == last - 2:
        last = starts.pop()
    ends = [*starts[1:], last]
    return tuple(end - begin for begin, end in zip(starts, ends))


def _local_plan(samples, q, k, v):
    dtype = q.dtype
    if torch.is_autocast_enabled(q.device.type):
        dtype = torch.get_autocast_dtype(q.device.type)
    return _plan(samples, q.shape[0], (q.shape[1], k.shape[1], q.shape[2], v.shape[2]), dtype,
                 str(q.device))


@functools.lru_cache(maxsize=64)
def _plan(samples, rows, shape, dtype, device):
    """Keyed by all that a plan is made for, so that it is never another microbatch's."""
    q_heads, kv_heads, head_dim, value_dim = shape
    options = _core.PlanOptions(q_heads=q_heads, kv_heads=kv_heads, head_dim=head_dim,
                                value_dim=value_dim, dtype=dtype_name(dtype), head_shards=1,
                                chunks=1, placer="none")
    return _alone(device).plan(options, [_core.PackedSequence(rows, list(samples))])


@functools.lru_cache(maxsize=None)
def _alone(device):
    from libra._pool import Pool

    return Pool(alone=True, device=device)
