"""Megatron-Core: a core-attention module for a layer spec.

    spec = get_gpt_layer_local_spec(...)        # or the Transformer Engine one
    libra.integrations.megatron.use_libra(spec)
    params = libra.integrations.megatron.packed_seq_params(plan, "thd")
    model(tokens, position_ids, None, packed_seq_params=params)

Data and RoPE stay as they are: plans have home="zigzag-document" for thd with cu_seqlens, and
"zigzag-row" without them, over tokens that Megatron's own batch split has laid out. A document then
has a multiple of 2 * CP tokens; a sample's length is the padded one, which changes no token's
attention. Recompute replays the module with the same PackedSeqParams, and so with the same plan.

Needs megatron.core to make PackedSeqParams only: CoreAttention has no base of its.
"""

import torch

from libra import _core
from libra._attention import attention
from libra._plans import find_plan

_HOMES = {"thd": "zigzag-document", "sbhd": "zigzag-row"}


class CoreAttention(torch.nn.Module):
    """What a layer spec's `core_attention` builds; Megatron gives the arguments.

    Raises ConfigError for what Libra's attention is not: windows, dropout, not causal.
    """

    def __init__(self, config, layer_number, attn_mask_type, attention_type, cp_comm_type=None,
                 softmax_scale=None, pg_collection=None, **_):
        super().__init__()
        if attention_type != "self" or getattr(config, "window_size", None) is not None:
            raise _core.ConfigError(
                "libra's core attention is causal self-attention without a window")
        if config.attention_dropout:
            raise _core.ConfigError(
                f"libra's core attention has no dropout: attention_dropout is "
                f"{config.attention_dropout}, set it to 0")
        scale = softmax_scale if softmax_scale is not None else config.kv_channels ** -0.5
        scaled_down = getattr(config, "apply_query_key_layer_scaling", False)
        self.softmax_scale = scale / max(1, layer_number) if scaled_down else scale

    def forward(self, query, key, value, attention_mask=None, /, *, attn_mask_type=None,
                attention_bias=None, packed_seq_params=None):
        """query [t, q_heads, d] (thd) or [s, 1, q_heads, d] (sbhd), RoPE applied, CP-local.

        Returns [t, q_heads * d], or [s, 1, q_heads * d].
        """
        if attention_bias is not None:
            raise _core.ConfigError("libra's core attention takes no bias")
        plan = getattr(packed_seq_params, "libra_plan", None)
        if plan is None:
            raise _core.ConfigError(
                "no plan for this microbatch: give the model PackedSeqParams of "
                "libra.integrations.megatron.packed_seq_params")
        batched = query.dim() == 4
        if batched and query.shape[1] != 1:
            raise _core.ConfigError(
                f"a batch of {query.shape[1]}: a microbatch is one packed sequence")
        q, k, v = ((t[:, 0] if batched else t) for t in (query, key, value))
        out = attention(q, k, v, plan=plan, scale=self.softmax_scale).flatten(1)
        return out[:, None] if batched else out


def use_libra(layer_spec):
    """Puts CoreAttention into the ModuleSpec of a TransformerLayer, and returns it."""
    layer_spec.submodules.self_attention.submodules.core_attention = CoreAttention
    return layer_spec


def packed_seq_params(plan, qkv_format="thd"):
    """PackedSeqParams of one microbatch that carry its plan (a `Plan` or its id).

    qkv_format: "thd" with cu_seqlens of the whole packed sequence, padding as one more document; or
    "sbhd", whose RoPE runs over the whole row. Raises ConfigError unless the plan's home is
    Megatron's for it (any, if CP is 1).
    """
    from megatron.core.packed_seq_params import PackedSeqParams

    plan = find_plan(int(plan))
    _check_home(plan, qkv_format)
    sequence = plan.core.sequences[plan.pool.worker // plan.options.cp]
    padding = sequence.tokens - sum(sequence.sample_tokens)
    sizes = [*sequence.sample_tokens, *([padding] if padding else [])]
    params = PackedSeqParams(qkv_format=qkv_format, max_seqlen_q=sequence.tokens,
                             max_seqlen_kv=sequence.tokens)
    if qkv_format == "thd":
        ends = torch.tensor([0, *sizes]).cumsum(0, dtype=torch.int32).to(plan.pool.device)
        params.cu_seqlens_q = params.cu_seqlens_kv = ends
        params.max_seqlen_q = params.max_seqlen_kv = max(sizes)
    params.libra_plan = plan.id
    return params


def _check_home(plan, qkv_format):
    options = plan.options
    parts = options.cp // options.tp
    if parts > 1 and options.home != _HOMES[qkv_format]:
        raise _core.ConfigError(
            f"Megatron lays {qkv_format} tokens out as {_HOMES[qkv_format]}, and the plan's home "
            f"is {options.home}")
    if parts > 1 and qkv_format == "thd":
        for sequence in plan.core.sequences:
            for tokens in sequence.sample_tokens:
                if tokens % (2 * parts):
                    raise _core.ConfigError(
                        f"a sample of {tokens} tokens: Megatron needs multiples of 2 * CP = "
                        f"{2 * parts}; pad it, or plan for the padded length")
