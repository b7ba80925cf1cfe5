"""Attention kernels other than Libra's own, behind one small contract.

    pool = libra.Pool(workers=P * CP, kernels=libra.kernels.FlashAttention())

Any object with the two methods of `Kernels` will do. Libra gathers the rows that a worker attends
into contiguous tensors, calls the kernels, and puts away what they return; plans, exchange and
everything else stay as they are. Temporaries, theirs and Libra's copies of rows, come from torch's
allocator: a plan's memory figures do not include them.
"""

from typing import Protocol, Tuple, runtime_checkable

import torch
from torch import Tensor

from libra._core import ConfigError


@runtime_checkable
class Kernels(Protocol):
    """Variable-length attention, as FlashAttention has it: sequences end to end.

    Sequence i has queries [cu_q[i], cu_q[i + 1]) and keys [cu_k[i], cu_k[i + 1]), none of them
    empty. Causal is bottom-right: with n queries and k keys, n <= k, query j sees keys
    [0, j + k - n]. Query head h uses KV head h * kv_heads // q_heads.

      q, out, d_out: [queries, q_heads, head_dim or value_dim]
      k, v: [keys, kv_heads, head_dim or value_dim]
      lse: [q_heads, queries], the natural logarithm of the sums of exp(scale * scores)
      cu_q, cu_k: [sequences + 1], int32, from 0; max_q, max_k: the longest, ints

    Tensors are contiguous, on the pool's device and in the plan's dtype; lse is float32, for
    float64 tensors float64. A call has at most 512 sequences, no two of which share a key.

    On CUDA the methods enqueue on torch's current stream and must not wait for the device: before
    a pass is exchanged they are run once for each larger size and each kind of call, results
    thrown away, so that what a first call loads and allocates holds up nobody later. On a CPU they
    are called on a thread of Libra's. What they raise fails the pass on every rank.

    A `devices` attribute, such as ("cuda",), has a pool on other devices refuse the kernels.
    """

    def forward(self, q: Tensor, k: Tensor, v: Tensor, cu_q: Tensor, cu_k: Tensor, max_q: int,
                max_k: int, causal: bool, scale: float) -> Tuple[Tensor, Tensor]:
        """(out, lse)."""

    def backward(self, d_out: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor,
                 cu_q: Tensor, cu_k: Tensor, max_q: int, max_k: int, causal: bool,
                 scale: float) -> Tuple[Tensor, Tensor, Tensor]:
        """(dq, dk, dv) of q, k and v, in their dtype or that of lse.

        out and lse are of each query's complete attention, of which these keys may be a part.
        """


class FlashAttention:
    """PyTorch's own build of FlashAttention 2, or what stands in for it: after
    `torch.nn.attention.activate_flash_attention_impl("FA3")` or "FA4", with their packages
    installed, these.

    CUDA only, bf16 and fp16, one head dimension for keys and values: a multiple of 8, at most 256.
    The last bits of dq can differ from run to run, unless torch.use_deterministic_algorithms(True).
    """

    devices = ("cuda",)

    def forward(self, q, k, v, cu_q, cu_k, max_q, max_k, causal, scale):
        """As `Kernels.forward`. Raises ConfigError for dtypes and dimensions it is not made for."""
        _check_supported(q, v)
        out, lse, *_ = torch.ops.aten._flash_attention_forward(
            q, k, v, cu_q, cu_k, max_q, max_k, 0.0, causal, False, scale=scale)
        return out, lse

    def backward(self, d_out, q, k, v, out, lse, cu_q, cu_k, max_q, max_k, causal, scale):
        """As `Kernels.backward`."""
        no_dropout = torch.empty(2, dtype=torch.uint64, device=q.device)  # a random state, not read
        return torch.ops.aten._flash_attention_backward(
            d_out, q, k, v, out, lse, cu_q, cu_k, max_q, max_k, 0.0, causal, no_dropout,
            torch.empty(0, device=q.device), scale=scale)


def _check_supported(q, v):
    dim, value_dim = q.shape[2], v.shape[2]
    if q.dtype not in (torch.bfloat16, torch.float16):
        raise ConfigError(f"FlashAttention is in bf16 and fp16, and the plan in {q.dtype}")
    if dim != value_dim or dim % 8 or dim > 256:
        raise ConfigError(f"FlashAttention wants head_dim = value_dim, a multiple of 8 up to 256: "
                          f"the plan has {dim} and {value_dim}")
