"""From microbatches to a model's inputs: what a DataLoader fetches, collates and refuses."""

import itertools
import re

import pytest
from torch.utils.data import DataLoader

import libra
from libra import Collator, PackedDataset, Planner, PooledBatchSampler
from samplers import LENGTHS, sampler, take

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


@pytest.mark.parametrize("documents, words", [
    ([[7] * 3, [7] * 6], "document 0 has 3 tokens where its length promised 4"),
    ([[7] * 5, [7] * 6], "document 0 has 5 tokens where its length promised 4"),
    ([[7] * 4], "the data set has 1 documents, and lengths were given for 2"),
    ([dict(text="x"), [7] * 6], "document 0 has no 'input_ids': it has text; tokenize first"),
], ids=["shorter", "longer", "fewer", "no tokens"])
def test_a_data_set_that_is_not_what_the_lengths_promise_is_an_error(documents, words):
    made = PooledBatchSampler([4, 6], seq_len=16, gbs=1, pool_size=1, order="file-order")
    for workers in (0, 1):
        with pytest.raises(libra.Error, match=words):
            list(DataLoader(PackedDataset(documents), batch_sampler=made, collate_fn=Collator(),
                            num_workers=workers))


def two_documents():
    return PooledBatchSampler([4, 6], seq_len=16, gbs=1, pool_size=1)


def test_a_forgotten_piece_is_named():
    documents = [[7] * 4, [7] * 6]
    for loader_of, words in [
            (lambda: DataLoader(documents, batch_sampler=two_documents(), collate_fn=Collator()),
             "DataLoader(libra.PackedDataset(dataset)"),
            (lambda: DataLoader(PackedDataset(documents), batch_sampler=two_documents()),
             "collate_fn=libra.Collator()"),
            (lambda: DataLoader(PackedDataset(documents), collate_fn=Collator()),
             "batch_sampler=libra.PooledBatchSampler")]:
        with pytest.raises(libra.ConfigError, match=re.escape(words)):
            list(loader_of())
    batch, = DataLoader(PackedDataset(documents), batch_sampler=two_documents(),
                        collate_fn=Collator())
    assert "libra_plan" not in batch
    with pytest.raises(libra.ConfigError, match=re.escape("planner=libra.Planner(pool, options)")):
        batch["libra_plan"]
    with pytest.raises(KeyError):
        batch["labelz"]


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
