"""Megatron-Core on CPUs, for tests: it asks for a GPU where it needs none."""

import contextlib
from unittest import mock

import torch

_make_tensor = torch.tensor


def _unpinned(*args, pin_memory=False, **kwargs):
    return _make_tensor(*args, **kwargs)


def _plain_ints(tensor, as_numpy=False, record_stream=False):
    """Sizes of an all-to-all must be ints; of a CPU's tensor Megatron leaves them a tensor."""
    return tensor.tolist() if as_numpy and torch.is_tensor(tensor) else tensor


_STAND_INS = {
    "torch.cuda.current_device": lambda: torch.device("cpu"),
    "torch.Tensor.cuda": lambda self, *_, **__: self,
    "torch.tensor": _unpinned,  # RoPE's indices
    # The expert all-to-all's stream for sizes, and the states of random numbers under recompute.
    "torch.cuda.Stream": mock.MagicMock(),
    "torch.cuda.stream": mock.MagicMock(),
    "torch.cuda.current_stream": mock.MagicMock(),
    "megatron.core.transformer.moe.token_dispatcher.maybe_move_tensor_to_cpu": _plain_ints,
    "megatron.core.tensor_parallel.random._get_cuda_rng_state": lambda **_: None,
    "megatron.core.tensor_parallel.random._set_cuda_rng_state": lambda *_, **__: None,
}


@contextlib.contextmanager
def without_a_gpu():
    """Puts the CPU in the GPU's place; nothing that computes or communicates is touched."""
    with contextlib.ExitStack() as patches:
        for name, stand_in in _STAND_INS.items():
            patches.enter_context(mock.patch(name, stand_in))
        yield
