"""torchtitan and PyTorch's varlen attention: the slot that context parallelism leaves open.

    masks = libra.integrations.torchtitan.with_plan(varlen_metadata, plan)
    model(tokens, positions=positions, attention_masks=masks)       # positions of this rank's rows

`LibraAttention` takes the place of an attention block's `inner_attention`: same arguments, the plan
on the metadata. RoPE follows the explicit positions, so any home layout works.
"""

import torch

from libra import _core
from libra._attention import attention


class LibraAttention(torch.nn.Module):
    """An `inner_attention` (torchtitan's VarlenAttention) on libra.attention."""

    def forward(self, q, k, v, *, attention_masks, scale=None, enable_gqa=False,
                out_transform=None, **_):
        """q [1, rows, q_heads, d] or [rows, q_heads, d]; k and v with kv_heads; the same comes out.

        out_transform(out, lse): the plan must have been made with return_lse.
        """
        plan = getattr(attention_masks, "libra_plan", None)
        if plan is None:
            raise _core.ConfigError(
                "no plan for this microbatch: give the model attention_masks of "
                "libra.integrations.torchtitan.with_plan")
        batched = q.dim() == 4
        if batched and q.shape[0] != 1:
            raise _core.ConfigError(f"a batch of {q.shape[0]}: a microbatch is one packed sequence")
        if batched:
            q, k, v = q[0], k[0], v[0]
        found = attention(q, k, v, plan=plan, scale=scale, return_lse=out_transform is not None)
        if out_transform is None:
            return found[None] if batched else found
        out, lse = (t[None] if batched else t for t in found)
        return out_transform(out, lse)


def with_plan(metadata, plan):
    """The varlen metadata (any named tuple) with `libra_plan`, for one microbatch."""
    planned = _planned_type(type(metadata))(*metadata)
    planned.libra_plan = int(plan)
    return planned


_types = {}


def _planned_type(base):
    if base not in _types:
        _types[base] = type("Planned" + base.__name__, (base,), {})
    return _types[base]


def use_libra(model):
    """Replaces every `inner_attention` of a model, and returns the model."""
    for module in list(model.modules()):
        if hasattr(module, "inner_attention"):
            module.inner_attention = LibraAttention()
    return model
