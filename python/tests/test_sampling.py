"""Microbatches out of lengths: equal steps on all ranks, every document once an epoch, resumed
anywhere."""

import collections
import itertools

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import libra
from libra import Collator, PackedDataset, Planner, PooledBatchSampler

RANDOM = np.random.default_rng(5)
LENGTHS = RANDOM.integers(0, 60, 400)
SIZES = dict(seq_len=128, gbs=8, dp=4, pool_size=2)


def sampler(dp_rank=0, lengths=LENGTHS, **changes):
    return PooledBatchSampler(lengths, **{**SIZES, "dp_rank": dp_rank, **changes})


def batches_of(epoch, dp_rank=0, **changes):
    made = sampler(dp_rank, **changes)
    made.set_epoch(epoch)
    return list(made)


def origins(batches):
    return collections.Counter(sample for batch in batches for sample in batch.samples)


# --- epochs --------------------------------------------------------------------------------------

@pytest.mark.parametrize("packing", ["first-fit", "best-fit-decreasing", "concat"])
def test_every_document_comes_once_an_epoch_and_steps_are_equal(packing):
    for epoch in (0, 1):
        by_rank = [batches_of(epoch, rank, packing=packing, last_window="drop")
                   for rank in range(4)]
        assert len({len(batches) for batches in by_rank}) == 1
        tokens = collections.Counter()
        for batch in itertools.chain(*by_rank):
            assert sum(n for _, _, n in batch.samples) <= 128
            for document, first, n in batch.samples:
                tokens[document] += n
        dropped = sum(LENGTHS) - sum(tokens.values())
        assert 0 <= dropped < 8 * 128
        for document, n in tokens.items():
            assert n == LENGTHS[document] or (packing == "concat" and n < LENGTHS[document])


def test_what_is_carried_over_is_not_lost():
    made = [sampler(rank) for rank in range(4)]
    seen = collections.Counter()
    for epoch in range(3):
        for each in made:
            each.set_epoch(epoch)
            seen += collections.Counter(d for batch in each for d in batch)
    # The last step of the third epoch is filled from the fourth.
    assert {3, 4} == set(seen[d] for d in range(len(LENGTHS)))


@pytest.mark.parametrize("last_window", ["carry", "drop"])
def test_the_length_is_what_is_yielded(last_window):
    made = sampler(last_window=last_window)
    for epoch in (0, 1, 3):
        made.set_epoch(epoch)
        assert len(made) == len(list(made)) > 0


def test_an_epoch_is_repeated_until_another_is_set():
    made = sampler()
    first = list(made)
    assert list(made) == first
    made.set_epoch(1)
    assert list(made) != first
    made.set_epoch(0)
    assert list(made) == first


def test_pools_are_of_like_cost():
    lengths = [128] * 40 + [4] * 1280
    costs = collections.defaultdict(int)
    for rank in range(4):
        for batch in batches_of(0, rank, lengths=lengths, seq_len=128, gbs=8):
            costs[batch.window, batch.ga_index, rank // 2] += sum(
                n * (n + 1) // 2 for _, _, n in batch.samples)
    of_window = [cost for (window, *_), cost in costs.items() if window == 1]
    assert len(of_window) == 4 and max(of_window) < 1.8 * np.mean(of_window)


# --- documents that are too long -----------------------------------------------------------------

@pytest.mark.parametrize("oversize, kept", [("truncate", 128), ("split", 300), ("drop", 0)])
def test_documents_longer_than_the_sequence_follow_the_policy(oversize, kept):
    batches = [batch for rank in range(4) for batch in batches_of(
        0, rank, lengths=[300, 84] + [128] * 17, oversize=oversize, last_window="drop",
        order="file-order", gbs=4)]
    parts = sorted((first, n) for batch in batches for d, first, n in batch.samples if d == 0)
    assert sum(n for _, n in parts) == kept
    if oversize == "split":
        assert parts == [(0, 128), (128, 128), (256, 44)]


def test_documents_longer_than_the_sequence_are_an_error_unless_told():
    with pytest.raises(libra.ConfigError, match="split"):
        list(sampler(lengths=[300] + [128] * 20))


@pytest.mark.parametrize("wrong", [dict(gbs=6), dict(pool_size=3), dict(dp_rank=4),
                                   dict(last_window="pad"), dict(order="random"),
                                   dict(packing="tight"), dict(grouping="fair"), dict(seq_len=0)])
def test_options_that_break_a_rule_are_an_error(wrong):
    with pytest.raises(libra.ConfigError):
        list(sampler(**wrong))


def test_no_epoch_that_fills_a_step_is_an_error_under_drop():
    with pytest.raises(libra.ConfigError, match="smaller GBS"):
        list(sampler(lengths=[5, 6], last_window="drop"))


# --- resuming ------------------------------------------------------------------------------------

def take(made, count):
    return list(itertools.islice(iter(made), count))


@pytest.mark.parametrize("last_window", ["carry", "drop"])
@pytest.mark.parametrize("epoch, taken", [(0, 3), (1, 4), (2, 5)])
def test_a_run_resumed_twice_in_the_middle_of_a_step_yields_the_rest(epoch, taken, last_window):
    whole = batches_of(epoch, 1, last_window=last_window)
    made = sampler(1, last_window=last_window)
    made.set_epoch(epoch)
    got = take(made, taken)
    for _ in range(2):
        state = made.state_dict()
        made = sampler(1, last_window=last_window)
        made.load_state_dict(state)
        made.set_epoch(epoch)  # as training loops do
        got += take(made, 2)
    state = made.state_dict()
    made = sampler(1, last_window=last_window)
    made.load_state_dict(state)
    assert got + list(made) == whole
    assert [b.samples for b in got] == [b.samples for b in whole[:len(got)]]
    made.set_epoch(epoch + 1)
    assert list(made) == batches_of(epoch + 1, 1, last_window=last_window)


def test_the_state_can_be_told_what_was_trained_on():
    made = sampler()
    take(made, 5)
    assert made.state_dict(microbatches=3)["microbatches"] == 3


def test_a_run_resumed_with_another_dp_sees_every_sequence_once():
    before = [batch for rank in range(4) for batch in take(sampler(rank), 4)]
    state = sampler_after(4).state_dict()
    after = []
    for rank in range(2):
        made = sampler(rank, dp=2)
        made.load_state_dict(state)
        after += list(made)
    whole = [batch for rank in range(4) for batch in batches_of(0, rank)]
    assert origins(before) + origins(after) == origins(whole)


def sampler_after(count):
    made = sampler()
    take(made, count)
    return made


@pytest.mark.parametrize("other, words", [
    (dict(dp=2), r"another dp \(4, now 2\): "), (dict(grouping="zigzag"), "another grouping"),
    (dict(by_load=True), "another by_load")])
def test_other_pools_in_the_middle_of_a_step_are_an_error(other, words):
    with pytest.raises(libra.ConfigError, match=words):
        sampler(**other).load_state_dict(sampler_after(3).state_dict())


def test_pools_of_like_load_share_an_index():
    # DP 4, P 2: two pools at once. Production order leaves loads as they come.
    def heaviest(by_load):
        batches = [batches_of(0, rank, grouping="production", by_load=by_load)[:2]
                   for rank in range(4)]
        work = [[sum(tokens * (tokens + 1) // 2 for _, _, tokens in batch.samples)
                 for batch in replica] for replica in batches]
        return sum(max(work[0][ga] + work[1][ga], work[2][ga] + work[3][ga]) for ga in range(2))

    assert heaviest(True) <= heaviest(False)


def test_the_state_of_other_lengths_or_options_is_an_error():
    state = sampler_after(2).state_dict()
    for other in (sampler(lengths=LENGTHS[:-1]), sampler(seed=1), sampler(gbs=16)):
        with pytest.raises(libra.ConfigError, match="same ones"):
            other.load_state_dict(state)


# --- batches -------------------------------------------------------------------------------------

def document(index):
    return {"input_ids": [1000 * index + i for i in range(LENGTHS[index])]}


DOCUMENTS = [document(i) for i in range(len(LENGTHS))]


def loader(made, **options):
    return DataLoader(PackedDataset(DOCUMENTS), batch_sampler=made, collate_fn=Collator(),
                      **options)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_brings_the_packed_sequence(workers):
    made = sampler()
    expected = list(made)
    for batch, inputs in zip(expected, loader(made, num_workers=workers), strict=True):
        sizes = [n for _, _, n in batch.samples]
        assert inputs["input_ids"].shape == (1, 128)
        assert inputs["cu_seqlens"].tolist() == [0, *itertools.accumulate(sizes)]
        assert inputs["max_seqlen"] == max(sizes)
        begin = 0
        for d, first, n in batch.samples:
            ids = inputs["input_ids"][0, begin:begin + n].tolist()
            assert ids == [1000 * d + i for i in range(first, first + n)]
            assert inputs["position_ids"][0, begin:begin + n].tolist() == list(range(n))
            if n:
                assert inputs["labels"][0, begin:begin + n].tolist() == ids[1:] + [-100]
            begin += n
        assert (inputs["labels"][0, begin:] == -100).all()


def test_labels_of_the_data_set_are_shifted_and_cut_documents_go_on():
    item = dict(input_ids=[1, 2, 3, 4, 5], labels=[-100, -100, 3, 4, 5])
    _, parts = PackedDataset([item]).__getitems__(
        libra.PackedBatch([(0, 0, 3), (0, 3, 2)], seq_len=8))
    assert [labels.tolist() for _, labels in parts] == [[-100, 3, 4], [5, -100]]


def test_lengths_that_promise_other_tokens_are_an_error():
    fetched = PackedDataset([[1, 2, 3]]).__getitems__(
        libra.PackedBatch([(0, 0, 4)], seq_len=8, runs=[(0, 8)], plan=None))
    with pytest.raises(libra.InputError, match="promise 4"):
        Collator()(fetched)


# --- plans ---------------------------------------------------------------------------------------

def planned(**of_pool):
    options = libra.PlanOptions(q_heads=4, kv_heads=2, head_dim=8, dtype="fp64", block_tokens=16,
                                chunks=1)
    planner = Planner(libra.Pool(**of_pool), options)
    return planner, sampler(dp=2, pool_size=1, gbs=4, planner=planner)


def test_plans_are_those_of_the_batches():
    planner, made = planned()
    for batch in made:
        plan = libra._plans.find_plan(batch.plan)
        assert plan.core.sequences == [
            libra.PackedSequence(128, [n for _, _, n in batch.samples])]
        assert batch.runs == plan.runs
    assert planner.metrics()["libra/planner_wait_seconds"] >= 0


def test_a_pool_keeps_the_latest_plans():
    planner, made = planned(keep=3)
    ids = [batch.plan for batch in take(made, 6)]
    for plan_id in ids[3:]:
        libra._plans.find_plan(plan_id)
    with pytest.raises(libra.PlanError, match="keep"):
        libra._plans.find_plan(ids[2])


def test_a_planner_of_another_pool_is_an_error():
    planner, _ = planned()
    with pytest.raises(libra.ConfigError, match="P 2 x CP 1 needs 2"):
        sampler(planner=planner)


def attend_to_batches(home):
    """Every rank of two pools trains on its own; the attention is right, and costs are even."""
    import dense
    from pools import deviation

    options = libra.PlanOptions(q_heads=4, kv_heads=2, head_dim=8, dtype="fp64", block_tokens=16,
                                chunks=1, cp=2, home=home)
    pool = libra.Pool(workers=2)
    made = PooledBatchSampler(LENGTHS, seq_len=128, gbs=4, pool_size=1,
                              planner=Planner(pool, options))
    worst = 0.0
    for batch, inputs in zip(take(made, 3), loader(made)):
        plan = libra._plans.find_plan(inputs["libra_plan"])
        q, k, v, _ = dense.tensors((4, 2, 8, 8), 128, 3)
        out, _ = dense.attention(q, k, v, [n for _, _, n in batch.samples])
        rows = plan.token_index()
        assert inputs["input_ids"].shape[1] == len(rows)
        own = libra.attention(q[rows], k[rows], v[rows], plan=plan)
        worst = max(worst, deviation(own, out[rows]))
    pool.close()
    return worst, [b.samples for b in take(made, 2)]


@pytest.mark.parametrize("home", ["contiguous", "zigzag-document"])
def test_ranks_of_a_sequence_get_its_shards(worlds, home):
    results = worlds(4).run(attend_to_batches, home)
    assert max(worst for worst, _ in results) < 1e-10
    assert results[0][1] == results[1][1] != results[2][1] == results[3][1]
