"""The inner_attention slot of torchtitan, to its interface; its package needs triton and a dozen
others to be imported, so its own metadata type is used where it is there."""

from typing import NamedTuple

import pytest
import torch

import libra
from libra.integrations import torchtitan as adapter
from pools import Case, deviation, shard_of, skewed


class VarlenMetadata(NamedTuple):
    """As torchtitan.models.common.attention has it."""
    cu_seq_q: torch.Tensor
    cu_seq_k: torch.Tensor
    max_q: int
    max_k: int
    cu_seq_q_host: tuple = None


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner_attention = torch.nn.Identity()

    def forward(self, q, k, v, attention_masks, **kwargs):
        return self.inner_attention(q, k, v, attention_masks=attention_masks, scale=None,
                                    enable_gqa=True, **kwargs)


def metadata_of(plan):
    ends = torch.tensor([0, 120])
    return adapter.with_plan(VarlenMetadata(ends, ends, 120, 120), plan)


def attend_in_a_block():
    pool = libra.Pool()
    case = Case(1, cp=pool.workers, samples=skewed(1))
    plan = pool.plan(case.plan_options(), case.sequences())
    shard = shard_of(case, plan)
    block = adapter.use_libra(Block())
    out = block(*(t[None] for t in (shard.q, shard.k, shard.v)), metadata_of(plan))
    pool.close()
    return out.shape[0], deviation(out[0], shard.out)


def test_varlen_attention_works_under_context_parallelism(worlds):
    for batch, worst in worlds(2).run(attend_in_a_block):
        assert batch == 1 and worst < 1e-10


def test_metadata_stays_what_it_was():
    pool = libra.Pool(alone=True)
    plan = pool.plan(Case(1).plan_options(), [[120]])
    metadata = metadata_of(plan)
    assert isinstance(metadata, VarlenMetadata) and metadata.max_q == 120
    assert metadata.libra_plan == plan.id


def test_a_transform_gets_the_log_sum_exp():
    pool = libra.Pool(alone=True)
    case = Case(1, samples=skewed(1))
    plan = pool.plan(case.plan_options(return_lse=True), case.sequences())
    shard = shard_of(case, plan)
    out, lse = adapter.LibraAttention()(
        shard.q, shard.k, shard.v, attention_masks=metadata_of(plan),
        out_transform=lambda out, lse: (out, lse))
    assert deviation(out, shard.out) < 1e-10 and deviation(lse, shard.lse) < 1e-10


def test_a_missing_plan_is_an_error():
    q = torch.randn(4, 2, 8)
    with pytest.raises(libra.ConfigError, match="with_plan"):
        adapter.LibraAttention()(q, q, q, attention_masks=None)
