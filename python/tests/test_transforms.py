"""What torch makes of libra.attention: recompute, compile, autocast, low precision."""

import functools
import warnings

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import dense
import libra
from pools import Case, deviation, exact, gradients, plan_of, shard_of

SAMPLES = [1, 0, 30, 7, 1, 1, 60]


def checkpointed(reentrant):
    pool = libra.Pool()
    case, plan = plan_of(pool)
    shard = shard_of(case, plan)
    q, k, v = (t.requires_grad_() for t in (shard.q, shard.k, shard.v))
    attend = functools.partial(libra.attention, plan=plan.id)
    exact(shard, checkpoint(attend, q, k, v, use_reentrant=reentrant), q, k, v)
    passes = pool.metrics()["libra/passes"]
    pool.close()
    return passes


@pytest.mark.parametrize("reentrant", [False, True])
def test_activation_checkpointing_replays_the_plan(worlds, reentrant):
    assert worlds(2).run(checkpointed, reentrant) == [3, 3]


def layer(q, k, v, plan):
    return libra.attention(q * 1.0, k, v, plan=plan) * 2.0


@pytest.mark.parametrize("backend, sizes", [("aot_eager", (120, 90, 77)), ("inductor", (120,))])
def test_a_compiled_layer_takes_plans_of_any_id_without_a_graph_break(pool, backend, sizes):
    torch._dynamo.reset()
    compiled = torch.compile(layer, backend=backend, fullgraph=True)
    for tokens in sizes:
        case = Case(1, tokens=tokens, samples=[[[1, 0, 30, 7, 33]]])
        _, plan = plan_of(pool, case)
        shard = shard_of(case, plan)
        q, k, v = (t.requires_grad_() for t in (shard.q, shard.k, shard.v))
        exact(shard, compiled(q, k, v, plan.id) / 2.0, q, k, v)


def compiled_pair():
    pool = libra.Pool()
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    case, plan = plan_of(pool)
    shard = shard_of(case, plan)
    q, k, v = (t.requires_grad_() for t in (shard.q, shard.k, shard.v))
    exact(shard, compiled(q, k, v, plan.id) / 2.0, q, k, v)
    pool.close()


def test_a_pool_of_compiled_layers_is_exact(worlds):
    worlds(2).run(compiled_pair)


def test_a_compiled_layer_is_refused_a_log_sum_exp_that_stays_elsewhere(pool):
    def attend(q, k, v, plan):
        return libra.attention(q, k, v, plan=plan, return_lse=True)

    compiled = torch.compile(attend, backend="aot_eager", fullgraph=True)
    case, plan = plan_of(pool, return_lse=True)
    shard = shard_of(case, plan)
    out, lse = compiled(shard.q, shard.k, shard.v, plan.id)
    assert deviation(out, shard.out) < 1e-10 and deviation(lse, shard.lse) < 1e-10
    _, without = plan_of(pool)
    with pytest.raises(libra.ConfigError, match="return_lse=True"):
        compiled(shard.q, shard.k, shard.v, without.id)


def test_a_derivative_in_forward_mode_is_refused_instead_of_left_out(pool):
    case, plan = plan_of(pool)
    shard = shard_of(case, plan)

    def attend(q):
        return libra.attention(q, shard.k, shard.v, plan=plan)

    with pytest.raises(libra.ConfigError, match="no derivative in forward mode"):
        torch.func.jvp(attend, (shard.q,), (shard.q,))
    assert deviation(attend(shard.q), shard.out) < 1e-10


def test_a_second_derivative_is_refused(pool):
    case, plan = plan_of(pool)
    shard = shard_of(case, plan)
    q = shard.q.requires_grad_()
    out = libra.attention(q, shard.k, shard.v, plan=plan)
    gradient, = torch.autograd.grad(out, q, shard.d_out, create_graph=True)
    assert deviation(gradient, shard.dq) < 1e-10
    with pytest.raises(RuntimeError, match="no autograd formula"):
        gradient.sum().backward()


def test_a_graph_that_is_kept_gives_its_gradients_again(pool):
    case, plan = plan_of(pool)
    shard = shard_of(case, plan)
    q = shard.q.requires_grad_()
    out = libra.attention(q, shard.k, shard.v, plan=plan)
    for _ in range(3):
        gradient, = torch.autograd.grad(out, q, shard.d_out, retain_graph=True)
        assert deviation(gradient, shard.dq) < 1e-10


def test_the_operator_keeps_torchs_promises(pool):
    case, plan = plan_of(pool)
    shard = shard_of(case, plan)
    q, k, v = (t.requires_grad_() for t in (shard.q, shard.k, shard.v))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.library.opcheck(torch.ops.libra.attention, (q, k, v, plan.id, 0.25))


def test_autocast_brings_the_inputs_to_its_dtype(pool):
    case = Case(1, samples=[[SAMPLES]])
    plan = pool.plan(case.plan_options(dtype="bf16"), case.sequences())
    q, k, v, d_out = dense.tensors(case.shape, case.tokens, 1, torch.float32)
    q.requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        out = libra.attention(q, k, v.bfloat16(), plan=plan)
    assert out.dtype == torch.bfloat16
    (out.float() * d_out).sum().backward()
    assert q.grad.dtype == torch.float32


@pytest.mark.parametrize("dtype, name", [(torch.float32, "fp32"), (torch.bfloat16, "bf16")])
def test_low_precision_errs_at_most_twice_as_much_as_torch_in_it(pool, dtype, name):
    case = Case(1, samples=[[SAMPLES]], options=dict(dtype=name))
    _, plan = plan_of(pool, case)
    inputs = dense.tensors(case.shape, case.tokens, 2, dtype)

    def through(attend, to):
        q, k, v = (t.to(to).detach().requires_grad_() for t in inputs[:3])
        out = attend(q, k, v)
        return [out, *gradients(out, inputs[3].to(to), q, k, v)]

    plain = functools.partial(dense.attention, samples=SAMPLES)
    exact_ones = through(lambda *t: plain(*t)[0], torch.float64)
    torchs = through(lambda *t: plain(*t)[0], dtype)
    ours = through(functools.partial(libra.attention, plan=plan), dtype)
    for exact_one, theirs, our in zip(exact_ones, torchs, ours):
        assert our.dtype == dtype
        allowed = 2 * deviation(theirs.double(), exact_one)
        assert deviation(our.double(), exact_one) <= allowed
