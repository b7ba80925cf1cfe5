"""Outputs and gradients of pools over gloo, in fp64, against dense attention in one process."""

import pytest

from pools import Case, assert_exact, run_case, skewed

CASES = {
    "P1": Case(1),
    "P2": Case(2),
    "CP2": Case(1, cp=2),
    "P2 refetch": Case(2, options=dict(backward="refetch")),
    "CP2 zigzag-row": Case(1, cp=2, options=dict(home="zigzag-row")),
    "CP2 TP2": Case(1, cp=2, tp=2),
    "P2 faithful": Case(2, options=dict(placer="paper", local_first=False)),
    "P2 one KV head, d_k != d_v": Case(2, shape=(4, 1, 24, 8)),
    "CP2 ulysses": Case(1, cp=2, options=dict(placer="ulysses")),
    "P4": Case(4, options=dict(tau=0.0)),
    "P2 CP2": Case(2, cp=2),
    "P2 CP2 zigzag-document": Case(2, cp=2, options=dict(home="zigzag-document", chunks=1)),
    "CP4": Case(1, cp=4),
    "P2 CP2 TP2": Case(2, cp=2, tp=2),
    "P2 CP2, two nodes, keys fetched once": Case(2, cp=2, options=dict(
        tau=0.0, gpus_per_node=2, node_fetch=True, block_tokens=8)),
    "P2 a replica without a sample": Case(2, samples=[[[], [117]]], options=dict(tau=0.0)),
    "P2 CP2 nothing but padding": Case(2, cp=2, samples=[[[], []]]),
    "CP4 TP2 more shards": Case(1, cp=4, tp=2, options=dict(head_shards=4, chunks=2)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_pool_equals_dense_attention(worlds, name):
    case = CASES[name]
    case.samples = case.samples or skewed(case.replicas)
    assert_exact(worlds(case.workers).run(run_case, case))


def test_two_pools_at_once_equal_dense_attention(worlds):
    case = Case(2, samples=skewed(2, pools=2), options=dict(tau=0.0))
    assert_exact(worlds(4).run(run_case, case))
