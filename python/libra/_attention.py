"""The operator: attention of a pool, as torch sees it."""

import math
import numbers
from typing import Tuple

import torch
from torch import Tensor
from torch.autograd import forward_ad

from libra._core import ConfigError, refuse
from libra._plans import Plan, find_plan
from libra._tensors import lse_dtype


def attention(q, k, v, *, plan, scale=None, return_lse=False):
    """Causal attention of this rank's tokens to their samples, balanced over the pool.

    Args:
      q: [tokens, q_heads / tp, head_dim]: this rank's rows and heads, in the home layout's local
        order (`plan.runs`).
      k, v: [tokens, kv_heads / tp, head_dim or value_dim]. All in the plan's dtype, with any
        strides; rows whose heads do not lie one after the other are copied.
      plan: a `Plan`, or its `id`. An int goes through torch.compile, checkpointing and pipeline
        schedules.
      scale: of the scores, a number without a gradient; head_dim ** -0.5 unless given.
      return_lse: also the natural log-sum-exp of the scaled scores, float32 (float64 for float64),
        without a gradient. The plan must have been made with return_lse.

    Returns:
      out [tokens, q_heads / tp, value_dim], or (out, lse [tokens, q_heads / tp]). Rows of no sample
      are 0, their lse -inf.

    A collective of the pool: every rank calls it, forward and backward, in the same order. Under
    autocast q, k and v are cast to its dtype. On CPU tensors it is done on return; on CUDA it is
    enqueued on the current stream.

    Raises ConfigError for tensors that are not the plan's, PlanError if ranks hold different plans,
    TransportError if one does not come within the pool's deadline: on every rank.

    The paper's sections 4.3 and 4.4.
    """
    plan_id = _id_of(plan)
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if not isinstance(tensor, Tensor) or tensor.dim() == 0:
            _refuse(plan_id, name, tensor, "a torch.Tensor [tokens, heads, dim]")
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    if not torch.compiler.is_compiling():
        scale = _number(plan_id, scale)
        _check_no_tangent(plan_id, q, k, v)
    device = q.device.type
    if device in ("cpu", "cuda") and torch.is_autocast_enabled(device):
        q, k, v = (t.to(torch.get_autocast_dtype(device)) for t in (q, k, v))
    out, lse, _ = _forward(q, k, v, plan_id, scale)
    return (out, _planned_lse(lse, plan_id)) if return_lse else out


def _id_of(plan):
    if isinstance(plan, (int, torch.SymInt)):
        return plan
    if isinstance(plan, Plan):
        return plan.id
    if plan is None:
        raise ConfigError("plan is None: pass a Plan or its id; a batch has \"libra_plan\" if its "
                          "sampler has a Planner")
    return refuse("attention", "plan", plan, "a Plan or its id, an int")


def _refuse(plan_id, name, value, wanted):
    try:
        refuse("attention", name, value, wanted)
    except ConfigError as error:
        find_plan(plan_id).pool.fail(error)


def _number(plan_id, scale):
    learned = isinstance(scale, Tensor) and scale.requires_grad and torch.is_grad_enabled()
    value = scale.detach() if isinstance(scale, Tensor) else scale
    try:
        number = float(value) if isinstance(value, (numbers.Real, Tensor)) else math.nan
    except (OverflowError, RuntimeError, ValueError):  # too large, or a tensor that is no number
        number = math.nan
    if learned or not math.isfinite(number):
        _refuse(plan_id, "scale", scale,
                "a float or None, and finite; what is learned has its gradient as a factor of q")
    return number


def _check_no_tangent(plan_id, *tensors):
    """torch would leave out the tangents of a custom operator without a word."""
    if any(forward_ad.unpack_dual(tensor).tangent is not None for tensor in tensors):
        find_plan(plan_id).pool.fail(ConfigError(
            "attention has no derivative in forward mode (jvp): take gradients backwards"))


# An operator, so that a compiled graph asks the plan that it is run with.
@torch.library.custom_op("libra::planned_lse", mutates_args=())
def _planned_lse(lse: Tensor, plan: int) -> Tensor:
    found = find_plan(plan)
    if not (found.options.return_lse or found.options.backward == "refetch"):
        found.pool.fail(ConfigError(
            "return_lse needs a plan made with PlanOptions(return_lse=True): the log-sum-exp of "
            "tiles computed elsewhere stayed there"))
    return lse.clone()


@_planned_lse.register_fake
def _(lse, plan):
    return torch.empty_like(lse)


@torch.library.custom_op("libra::attention", mutates_args=())
def _forward(q: Tensor, k: Tensor, v: Tensor, plan: int, scale: float) -> Tuple[
        Tensor, Tensor, Tensor]:
    found = find_plan(plan)
    return found.pool.forward(found, q, k, v, scale)


@_forward.register_fake
def _(q, k, v, plan, scale):
    saved_bytes = torch.library.get_ctx().new_dynamic_size()
    return (q.new_empty(q.shape[0], q.shape[1], v.shape[2]),
            q.new_empty(q.shape[0], q.shape[1], dtype=lse_dtype(q.dtype)),
            q.new_empty(saved_bytes, dtype=torch.uint8))


@torch.library.custom_op("libra::attention_backward", mutates_args=())
def _backward(d_out: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor,
              saved: Tensor, plan: int, scale: float) -> Tuple[Tensor, Tensor, Tensor]:
    found = find_plan(plan)
    return found.pool.backward(found, d_out, q, k, v, out, lse, saved, scale)


@_backward.register_fake
def _(d_out, q, k, v, out, lse, saved, plan, scale):
    return tuple(t.new_empty(t.shape) for t in (q, k, v))


def _keep(ctx, inputs, output):
    q, k, v, ctx.plan, ctx.scale = inputs
    ctx.save_for_backward(q, k, v, *output)
    ctx.mark_non_differentiable(*output[1:])
    ctx.held = find_plan(ctx.plan) if type(ctx.plan) is int and not _is_fake(q) else None


def _is_fake(tensor):
    return isinstance(tensor, torch._subclasses.FakeTensor)


def _differentiate(ctx, d_out, d_lse, d_saved):
    dq, dk, dv = _backward(d_out, *ctx.saved_tensors, ctx.plan, ctx.scale)
    return dq, dk, dv, None, None


_forward.register_autograd(_differentiate, setup_context=_keep)
