"""Kernels in plain torch operations (libra.kernels.Kernels), which hold Libra to the contract."""

import itertools

import torch

import libra


class DenseKernels:
    def forward(self, q, k, v, cu_q, cu_k, max_q, max_k, causal, scale):
        check_call(q, k, v, cu_q, cu_k, max_q, max_k, causal)
        out = q.new_full((*q.shape[:2], v.shape[2]), torch.nan)
        lse = q.new_full(q.shape[:2], torch.nan, dtype=accumulating(q)).T.contiguous()
        for queries, keys in sequences(cu_q, cu_k):
            scores = scores_of(q[queries], k[keys], causal, scale)
            lse[:, queries] = scores.logsumexp(-1)
            out[queries] = torch.einsum(
                "hqk,khd->qhd", scores.softmax(-1), expanded(q, v[keys])).to(q.dtype)
        return out, lse

    def backward(self, d_out, q, k, v, out, lse, cu_q, cu_k, max_q, max_k, causal, scale):
        check_call(q, k, v, cu_q, cu_k, max_q, max_k, causal, d_out, out, lse)
        assert lse.shape == (q.shape[1], q.shape[0]) and lse.dtype == accumulating(q)
        totals = [torch.full_like(t, torch.nan, dtype=accumulating(q)) for t in (q, k, v)]
        for queries, keys in sequences(cu_q, cu_k):
            parts = gradients_of(d_out[queries], q[queries], k[keys], v[keys], out[queries],
                                 lse[:, queries], causal, scale)
            for total, rows, part in zip(totals, (queries, keys, keys), parts):
                total[rows] = part
        return totals


def accumulating(tensor):
    return torch.float64 if tensor.dtype == torch.float64 else torch.float32


def check_call(q, k, v, cu_q, cu_k, max_q, max_k, causal, *others):
    assert all(t.is_contiguous() for t in (q, k, v, cu_q, cu_k, *others))
    lengths_q, lengths_k = cu_q.diff(), cu_k.diff()
    for cu, lengths, longest, rows in ((cu_q, lengths_q, max_q, q.shape[0]),
                                       (cu_k, lengths_k, max_k, k.shape[0])):
        assert cu.dtype == torch.int32 and cu[0] == 0 and cu[-1] == rows
        assert lengths.min() >= 1 and lengths.max() == longest and len(lengths) <= 512
    assert len(cu_q) == len(cu_k) and v.shape[0] == k.shape[0]
    assert not causal or (lengths_q <= lengths_k).all()
    assert not torch.is_grad_enabled() and not torch.is_autocast_enabled(q.device.type)


def sequences(cu_q, cu_k):
    return zip(*(itertools.starmap(slice, itertools.pairwise(cu.tolist())) for cu in (cu_q, cu_k)))


def expanded(q, k):
    return k.to(accumulating(k)).repeat_interleave(q.shape[1] // k.shape[1], 1)


def scores_of(q, k, causal, scale):
    scores = torch.einsum("qhd,khd->hqk", q.to(accumulating(q)), expanded(q, k)) * scale
    hidden = torch.ones(len(q), len(k), dtype=torch.bool).triu(len(k) - len(q) + 1)
    return scores.masked_fill(hidden, -torch.inf) if causal else scores


def gradients_of(d_out, q, k, v, out, lse, causal, scale):
    """Of queries whose complete attention gave out and lse, from these keys."""
    p = (scores_of(q, k, causal, scale) - lse[:, :, None]).exp()
    return gradients_from(p, d_out, q, k, v, out, scale)


def gradients_from(p, d_out, q, k, v, out, scale):
    wide = accumulating(q)
    d_out, out, q_wide = d_out.to(wide), out.to(wide), q.to(wide)
    d_p = torch.einsum("qhd,khd->hqk", d_out, expanded(q, v))
    d_s = p * (d_p - (d_out * out).sum(-1).T[:, :, None]) * scale
    dq = torch.einsum("hqk,khd->qhd", d_s, expanded(q, k))
    dk, dv = (torch.einsum("hqk,qhd->khd", weights, by).unflatten(1, (k.shape[1], -1)).sum(2)
              for weights, by in ((d_s, q_wide), (p, d_out)))
    return dq, dk, dv


class FailingKernels(DenseKernels):
    """On one rank, at one method, raises or returns something else."""

    def __init__(self, method, result):
        self._method, self._result = method, result

    def forward(self, *args):
        return self._instead("forward", super().forward(*args))

    def backward(self, *args):
        return self._instead("backward", super().backward(*args))

    def _instead(self, method, results):
        return self._result(*results) if method == self._method else results


def raise_value_error(*results):
    raise ValueError("no such\nkernel")


def raise_config_error(*results):
    raise libra.ConfigError("head_dim 16 is not for these kernels")
