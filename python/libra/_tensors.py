"""Tensors as the core takes them: by address, dtype, shape and strides."""

import torch

from libra import _core

DTYPES = {torch.float64: "fp64", torch.float32: "fp32", torch.bfloat16: "bf16",
           torch.float16: "fp16"}


def dtype_name(dtype):
    """"bf16" and so on. Raises ConfigError for what attention is not computed in."""
    if dtype not in DTYPES:
        raise _core.ConfigError(f"attention is in bf16, fp16, fp32 or fp64, not {dtype}")
    return DTYPES[dtype]


def lse_dtype(dtype):
    """In which the log-sum-exp is kept: float64 for float64, float32 for all others."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def dtype_advice(planned, *tensors):
    """What to do about tensors in another dtype than the plan's; "" if they are in it."""
    found = next((DTYPES[t.dtype] for t in tensors if DTYPES[t.dtype] != planned), None)
    if found is None:
        return ""
    if planned in ("bf16", "fp16") and found in ("fp32", "fp64"):
        return (f"; run the model under torch.autocast, or in {planned}, or plan with "
                f'PlanOptions(dtype="{found}")')
    return f'; under torch.autocast or in such a model, plan with PlanOptions(dtype="{found}")'


def rows(tensor):
    """The tensor, or a copy, as rows whose heads lie one after the other: what can be exchanged."""
    heads, dim = tensor.shape[1:]
    dense = tensor.stride(2) == 1 or dim == 1
    dense = dense and (heads == 1 or tensor.stride(1) == dim)
    dense = dense and (tensor.shape[0] <= 1 or tensor.stride(0) >= heads * dim)
    if tensor.is_cuda:  # copy engines and kernels want rows that begin on 16 bytes
        step = 16 // tensor.element_size()
        dense = dense and tensor.data_ptr() % 16 == 0 and tensor.stride(0) % step == 0
    return tensor if dense else tensor.contiguous()


def view(tensor):
    tokens, heads, *dim = tensor.shape
    dim = dim[0] if dim else 1
    return (tensor.data_ptr(), DTYPES[tensor.dtype], tokens, heads, dim, tensor.stride(0), dim)
