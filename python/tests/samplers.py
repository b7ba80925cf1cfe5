"""Samplers of one small corpus, for tests of microbatches."""

import collections
import itertools

import numpy as np

from libra import PooledBatchSampler

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


def take(made, count):
    return list(itertools.islice(iter(made), count))
