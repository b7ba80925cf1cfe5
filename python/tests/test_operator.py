"""libra.attention as an operator: strides, heads, gradients, plans. One rank is enough for most of
it; what a pool could do wrong is run on two."""

import math

import pytest
import torch

import dense
import libra
from pools import Case, deviation, exact, gradients, plan_of, shard_of

# --- strides -------------------------------------------------------------------------------------

def fused(t):
    """Rows of a wider tensor, as the slices of a fused projection."""
    return torch.cat([t, torch.full_like(t, 7.0)], 1)[:, :t.shape[1]]


def heads_first(t):
    return t.transpose(0, 1).contiguous().transpose(0, 1)


def dim_first(t):
    return t.permute(2, 0, 1).contiguous().permute(1, 2, 0)


@pytest.mark.parametrize("layout", [fused, heads_first, dim_first])
def test_strides_of_inputs_and_of_the_gradient_are_honoured(pool, layout):
    case, plan = plan_of(pool)
    shard = shard_of(case, plan)
    q, k, v = (layout(t).detach().requires_grad_() for t in (shard.q, shard.k, shard.v))
    assert not q.is_contiguous()
    shard.d_out = layout(shard.d_out)
    exact(shard, libra.attention(q, k, v, plan=plan), q, k, v)


def test_a_gradient_without_strides_is_right(pool):
    case, plan = plan_of(pool)
    shard = shard_of(case, plan)
    q = shard.q.requires_grad_()
    libra.attention(q, shard.k, shard.v, plan=plan).sum().backward()  # an expanded 1
    full = shard.q.detach().requires_grad_()
    dense.attention(full, shard.k, shard.v, case.samples[0][0])[0].sum().backward()
    assert deviation(q.grad, full.grad) < 1e-10


def strided_pair(layout):
    pool = libra.Pool()
    case, plan = plan_of(pool)
    shard = shard_of(case, plan)
    q, k, v = (layout(t).detach().requires_grad_() for t in (shard.q, shard.k, shard.v))
    exact(shard, libra.attention(q, k, v, plan=plan), q, k, v)
    pool.close()


@pytest.mark.parametrize("layout", [fused, dim_first])
def test_strides_are_honoured_by_the_exchange(worlds, layout):
    worlds(2).run(strided_pair, layout)


# --- heads and dimensions ------------------------------------------------------------------------

@pytest.mark.parametrize("shape", [(40, 8, 8, 8), (8, 1, 16, 16), (6, 6, 4, 12), (4, 2, 96, 64),
                                   (2, 2, 256, 256), (2, 1, 64, 64),
                                   (2, 1, 192, 128), (4, 4, 1, 1)])
def test_head_counts_and_dimensions_work(pool, shape):
    case = Case(1, shape=shape, tokens=40, samples=[[[25, 3, 11]]], options=dict(chunks=1))
    _, plan = plan_of(pool, case)
    shard = shard_of(case, plan)
    q, k, v = (t.requires_grad_() for t in (shard.q, shard.k, shard.v))
    exact(shard, libra.attention(q, k, v, plan=plan), q, k, v)


@pytest.mark.parametrize("heads, options", [
    (dict(q_heads=40, kv_heads=16), {}),
    (dict(q_heads=12, kv_heads=4), dict(head_shards=5)),
    (dict(q_heads=12, kv_heads=3), dict(head_shards=2)),
    (dict(q_heads=8, kv_heads=4), dict(chunks=3)),
    (dict(q_heads=8, kv_heads=4), dict(tp=3)),
])
def test_heads_that_break_a_rule_name_it_and_the_nearest_legal_value(pool, heads, options):
    given = libra.PlanOptions(**heads, head_dim=16, **{**dict(cp=4, chunks=1), **options})
    with pytest.raises(libra.ConfigError, match="divide.*(nearest|legal)"):
        pool.plan(given, [[16]])


def test_a_scale_is_the_softmax_scale(pool):
    case, plan = plan_of(pool)
    shard = shard_of(case, plan, scale=0.7)
    q, k, v = (t.requires_grad_() for t in (shard.q, shard.k, shard.v))
    exact(shard, libra.attention(q, k, v, plan=plan, scale=0.7), q, k, v)


@pytest.mark.parametrize("scale", [
    math.nan, math.inf, 10 ** 400, "x", 1j, torch.tensor([1.0, 2.0]),
    torch.tensor(0.25, requires_grad=True)])
def test_a_scale_that_is_no_plain_number_is_an_error(pool, scale):
    case, plan = plan_of(pool)
    shard = shard_of(case, plan)
    with pytest.raises(libra.ConfigError, match="scale=.*a float or None, and finite") as raised:
        libra.attention(shard.q, shard.k, shard.v, plan=plan, scale=scale)
    assert "\n" not in str(raised.value)
    with torch.no_grad():  # nothing is learned here
        libra.attention(shard.q, shard.k, shard.v, plan=plan, scale=torch.nn.Parameter(
            torch.tensor(0.25)))
    assert deviation(libra.attention(shard.q, shard.k, shard.v, plan=plan), shard.out) < 1e-10


# --- what needs a gradient -----------------------------------------------------------------------

@pytest.mark.parametrize("wanted", ["q", "k", "v", "kv"])
def test_frozen_inputs_get_no_gradient_and_the_others_the_right_one(pool, wanted):
    case, plan = plan_of(pool)
    shard = shard_of(case, plan)
    inputs = dict(q=shard.q, k=shard.k, v=shard.v)
    for name in wanted:
        inputs[name].requires_grad_()
    (libra.attention(**inputs, plan=plan) * shard.d_out).sum().backward()
    for name, tensor in inputs.items():
        assert (tensor.grad is None) == (name not in wanted)
        if tensor.grad is not None:
            assert deviation(tensor.grad, getattr(shard, f"d{name}")) < 1e-10


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_evaluation_needs_no_gradient(pool, mode):
    case, plan = plan_of(pool)
    shard = shard_of(case, plan)
    with mode():
        out = libra.attention(shard.q, shard.k, shard.v, plan=plan)
    assert deviation(out, shard.out) < 1e-10


def test_padding_has_zero_rows_and_zero_gradients(pool):
    case = Case(1, tokens=946, samples=[[[900, 44]]], options=dict(block_tokens=128))
    _, plan = plan_of(pool, case)
    shard = shard_of(case, plan)
    q, k, v = (t.requires_grad_() for t in (shard.q, shard.k, shard.v))
    out = libra.attention(q, k, v, plan=plan)
    assert (out[944:] == 0).all()
    for gradient in gradients(out, shard.d_out, q, k, v):
        assert torch.isfinite(gradient).all() and (gradient[944:] == 0).all()


def test_lse_comes_on_request_and_without_a_gradient(pool):
    case, plan = plan_of(pool, return_lse=True)
    shard = shard_of(case, plan)
    q = shard.q.requires_grad_()
    out, lse = libra.attention(q, shard.k, shard.v, plan=plan, return_lse=True)
    assert out.requires_grad and not lse.requires_grad
    assert deviation(lse, shard.lse) < 1e-10
    _, without = plan_of(pool)
    with pytest.raises(libra.ConfigError, match="return_lse=True"):
        libra.attention(q, shard.k, shard.v, plan=without, return_lse=True)


# --- plans ---------------------------------------------------------------------------------------

def test_a_plan_serves_many_layers_and_microbatches_in_flight(pool):
    case, plan = plan_of(pool)
    _, other = plan_of(pool, block_tokens=32)
    shard = shard_of(case, plan)
    q, k, v = (t.requires_grad_() for t in (shard.q, shard.k, shard.v))
    outs = [libra.attention(q, k, v, plan=p) for p in (plan, other.id, plan.id)]
    for out in (outs[1], outs[0], outs[2]):
        exact(shard, out, q, k, v)


def test_evaluation_with_another_shape_uses_its_own_plan(pool):
    case, plan = plan_of(pool)
    small = Case(1, shape=(4, 2, 8, 8), tokens=50, samples=[[[20, 30]]])
    another = libra.Pool()
    for each, on in ((case, pool), (small, another), (case, pool), (small, pool)):
        _, plan = plan_of(on, each)
        shard = shard_of(each, plan)
        q, k, v = (t.requires_grad_() for t in (shard.q, shard.k, shard.v))
        exact(shard, libra.attention(q, k, v, plan=plan), q, k, v)
    another.close()


def test_a_plan_that_was_let_go_is_an_error():
    pool = libra.Pool(keep=1)
    case, plan = plan_of(pool)
    shard = shard_of(case, plan)
    gone = plan.id
    del plan
    assert deviation(libra.attention(shard.q, shard.k, shard.v, plan=gone), shard.out) < 1e-10
    plan_of(pool)
    with pytest.raises(libra.PlanError, match=f"no plan {gone}"):
        libra.attention(shard.q, shard.k, shard.v, plan=gone)


@pytest.mark.parametrize("planned, given, words", [
    ("bf16", torch.float32, "Q is .* fp32: the plan has .* bf16 for this worker; run the model "
     "under torch.autocast, or in bf16, or plan with PlanOptions\\(dtype=\"fp32\"\\)"),
    ("fp32", torch.bfloat16, "Q is .* bf16: the plan has .* fp32 for this worker; under "
     "torch.autocast or in such a model, plan with PlanOptions\\(dtype=\"bf16\"\\)"),
    ("fp16", torch.float16, "fp16"),
])
def test_another_dtype_than_the_plans_says_what_to_do(pool, planned, given, words):
    case, plan = plan_of(pool, dtype=planned)
    q, k, v, _ = dense.tensors(case.shape, case.tokens, 0, given)
    with pytest.raises(libra.ConfigError, match=words):
        libra.attention(q, k, v, plan=plan)


@pytest.mark.parametrize("change, words", [
    (lambda q, k, v: (q[:-1], k, v), "Q is \\[119, 8, 16\\]"),
    (lambda q, k, v: (q, k[:, :2], v), "K is \\[120, 2, 16\\]"),
    (lambda q, k, v: (q, k, v.float()), "V is .* fp32: the plan has .* fp64"),
    (lambda q, k, v: (q[None], k, v), "4 dimensions"),
    (lambda q, k, v: (q.to("meta"), k.to("meta"), v.to("meta")), "must be on cpu"),
    (lambda q, k, v: (q.long(), k, v), "torch.int64"),
])
def test_tensors_that_are_not_the_plans_are_an_error(pool, change, words):
    case, plan = plan_of(pool)
    shard = shard_of(case, plan)
    with pytest.raises(libra.ConfigError, match=words):
        pool.forward(plan, *change(shard.q, shard.k, shard.v), 0.25)
    assert deviation(libra.attention(shard.q, shard.k, shard.v, plan=plan), shard.out) < 1e-10
