"""Megatron-Core's own GPT model on CPU, with Libra's core attention in its layer spec."""

from unittest import mock

import pytest
import torch
import torch.distributed as dist

import dense
import libra
from pools import deviation

pytest.importorskip("megatron.core", reason="needs megatron-core")

from libra._plans import Plan  # noqa: E402
from libra.integrations import megatron as adapter  # noqa: E402
from without_gpu import without_a_gpu  # noqa: E402

VOCABULARY, TOKENS = 61, 64
SAMPLES = {"thd": [[16, 4, 40], [8] * 7], "sbhd": [[64], [64]]}


def model_with(core_attention, cp):
    from megatron.core import parallel_state
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.transformer.transformer_config import TransformerConfig

    if not parallel_state.model_parallel_is_initialized():
        parallel_state.initialize_model_parallel(context_parallel_size=cp)
    config = TransformerConfig(
        num_layers=2, hidden_size=32, num_attention_heads=4, num_query_groups=2, kv_channels=8,
        use_cpu_initialization=True, params_dtype=torch.float64, attention_dropout=0.0,
        hidden_dropout=0.0, add_bias_linear=False, normalization="RMSNorm",
        context_parallel_size=cp, apply_rope_fusion=False)
    spec = adapter.use_libra(get_gpt_layer_local_spec(normalization="RMSNorm"))
    spec.submodules.self_attention.submodules.core_attention = core_attention
    torch.manual_seed(3)
    return GPTModel(config, spec, vocab_size=VOCABULARY, max_sequence_length=TOKENS,
                    position_embedding_type="rope", parallel_output=False).double()


class DenseAttention(torch.nn.Module):
    """The yardstick, with the samples of its microbatch."""

    def __init__(self, **_):
        super().__init__()

    def forward(self, query, key, value, attention_mask=None, /, *, attn_mask_type=None,
                attention_bias=None, packed_seq_params=None):
        batched = query.dim() == 4
        q, k, v = ((t[:, 0] if batched else t) for t in (query, key, value))
        out = dense.attention(q, k, v, packed_seq_params.samples)[0].flatten(1)
        return out[:, None] if batched else out


def tokens_of(replica):
    return torch.randint(0, VOCABULARY, (1, TOKENS),
                         generator=torch.Generator().manual_seed(replica))


def positions_of(qkv_format, replica):
    sizes = SAMPLES[qkv_format][replica]
    return torch.cat([torch.arange(n) for n in [*sizes, TOKENS - sum(sizes)]])[None]


def run(qkv_format, cp):
    """Logits and gradients of this rank, and those that one process computes for its rows."""
    with without_a_gpu():
        ours = model_with(adapter.CoreAttention, cp)
        replica = dist.get_rank() // cp
        pool = libra.Pool()
        plan = pool.plan(
            libra.PlanOptions(q_heads=4, kv_heads=2, head_dim=8, dtype="fp64", cp=cp, chunks=1,
                              block_tokens=8, home=adapter._HOMES[qkv_format]),
            [libra.PackedSequence(TOKENS, s) for s in SAMPLES[qkv_format][:pool.workers // cp]])
        rows = plan.token_index()
        tokens, positions = tokens_of(replica), positions_of(qkv_format, replica)
        params = adapter.packed_seq_params(plan, qkv_format)
        logits = ours(tokens[:, rows], positions[:, rows], None, packed_seq_params=params)
        weights = torch.randn(1, TOKENS, VOCABULARY, dtype=torch.float64,
                              generator=torch.Generator().manual_seed(9))
        (logits * weights[:, rows]).sum().backward()
        gradients = [p.grad for p in ours.parameters()]
        pool.close()
        return rows, logits.detach(), gradients


def expected(qkv_format, replica):
    with without_a_gpu():
        model = model_with(DenseAttention, 1)
        pool = libra.Pool(alone=True)
        plan = pool.plan(libra.PlanOptions(q_heads=4, kv_heads=2, head_dim=8, chunks=1),
                         [libra.PackedSequence(TOKENS, SAMPLES[qkv_format][replica])])
        params = adapter.packed_seq_params(plan, qkv_format)
        params.samples = SAMPLES[qkv_format][replica]
        logits = model(tokens_of(replica), positions_of(qkv_format, replica), None,
                       packed_seq_params=params)
        weights = torch.randn(1, TOKENS, VOCABULARY, dtype=torch.float64,
                              generator=torch.Generator().manual_seed(9))
        (logits * weights).sum().backward()
        return logits.detach(), [p.grad for p in model.parameters()]


@pytest.mark.parametrize("qkv_format, cp", [("thd", 1), ("thd", 2), ("sbhd", 2)])
def test_a_gpt_model_keeps_its_data_and_rope(qkv_format, cp):
    from worlds import World

    alone, world = World(1), World(2)
    results = world.run(run, qkv_format, cp)
    replicas = [alone.run(expected, qkv_format, replica)[0] for replica in range(2 // cp)]
    alone.close()
    world.close()
    for rank, (rows, logits, _) in enumerate(results):
        assert deviation(logits, replicas[rank // cp][0][:, rows]) < 1e-10
    for ours, theirs in zip(zip(*(g for _, _, g in results)), zip(*(g for _, g in replicas))):
        total, right = sum(ours), sum(theirs)
        assert deviation(total, right) < 1e-10 * max(1.0, float(right.abs().max()))


def one_plan(**changes):
    pool = libra.Pool(alone=True)
    given = dict(q_heads=4, kv_heads=2, head_dim=8, dtype="fp64", chunks=1)
    return pool, pool.plan(libra.PlanOptions(**{**given, **changes}), [[8, 8]])


def config(**changes):
    return mock.Mock(attention_dropout=0.0, window_size=None, kv_channels=8,
                     apply_query_key_layer_scaling=False, **changes)


def test_a_missing_plan_is_an_error():
    core = adapter.CoreAttention(config(), 1, None, "self")
    q = torch.randn(16, 4, 8)
    with pytest.raises(libra.ConfigError, match="packed_seq_params"):
        core(q, q, q, None)


@pytest.mark.parametrize("wrong", [dict(attention_dropout=0.1), dict(window_size=(8, 0))])
def test_what_it_cannot_do_is_an_error_when_the_model_is_built(wrong):
    given = config()
    given.configure_mock(**wrong)
    with pytest.raises(libra.ConfigError):
        adapter.CoreAttention(given, 1, None, "self")


def test_another_home_than_megatrons_is_an_error():
    pool = mock.Mock(worker=0)  # of two ranks: the adapter asks it for nothing else
    for home, samples, word in (("contiguous", [8], "zigzag-document"),
                                ("zigzag-document", [7], "multiples of 2 \\* CP")):
        core = libra.make_plan(
            libra.PlanOptions(q_heads=4, kv_heads=2, head_dim=8, chunks=1, cp=2, home=home),
            [libra.PackedSequence(8, samples)])
        plan = Plan(core, pool)
        with pytest.raises(libra.ConfigError, match=word):
            adapter.packed_seq_params(plan, "thd")


def test_the_output_has_the_shape_that_megatron_wants():
    pool, plan = one_plan()
    core = adapter.CoreAttention(config(), 1, None, "self")
    params = adapter.packed_seq_params(plan)
    q, k = (torch.randn(16, heads, 8, dtype=torch.float64) for heads in (4, 2))
    assert core(q, k, k, None, packed_seq_params=params).shape == (16, 32)
    assert core(q[:, None], k[:, None], k[:, None], None,
                packed_seq_params=params).shape == (16, 1, 32)
    with pytest.raises(libra.ConfigError, match="batch of 2"):
        core(*(t[:, None].expand(-1, 2, -1, -1) for t in (q, k, k)), None,
             packed_seq_params=params)
