"""Attention without Libra, in plain torch: what outputs and gradients must equal."""

import math

import torch


def attention(q, k, v, samples, scale=None):
    """(out, lse) of a whole sequence [tokens, heads, dim]; padding has 0 and -inf."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    group = q.shape[1] // k.shape[1]
    k, v = (t.repeat_interleave(group, 1) for t in (k, v))
    outs, lses, begin = [], [], 0
    for tokens in samples:
        rows = slice(begin, begin + tokens)
        begin += tokens
        scores = torch.einsum("qhd,khd->hqk", q[rows], k[rows]) * scale
        hidden = torch.ones(tokens, tokens, dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(hidden, -math.inf)
        lses.append(scores.logsumexp(-1).T)
        outs.append(torch.einsum("hqk,khd->qhd", scores.softmax(-1), v[rows]))
    padding = q.shape[0] - begin
    outs.append(q[begin:, :, :1].expand(-1, -1, v.shape[2]) * 0)  # a part of the graph
    lses.append(q.new_full((padding, q.shape[1]), -math.inf))
    return torch.cat(outs), torch.cat(lses)


def tensors(shape, tokens, seed, dtype=torch.float64):
    """q, k, v, d_out of a whole sequence, standard normal, the same on every rank.

    shape: (q_heads, kv_heads, head_dim, value_dim).
    """
    q_heads, kv_heads, head_dim, value_dim = shape
    random = torch.Generator().manual_seed(seed)
    sizes = [(q_heads, head_dim), (kv_heads, head_dim), (kv_heads, value_dim),
             (q_heads, value_dim)]
    return [torch.randn(tokens, *size, generator=random, dtype=torch.float64).to(dtype)
            for size in sizes]
