"""Entries computed by variable-length kernels, against what attention.h says an entry is."""

import itertools
import random

import pytest
import torch

from dense_kernels import DenseKernels, accumulating, expanded, gradients_from
from libra import _entries
from libra._entries import BOTTOM_RIGHT, FULL, TOP_LEFT, Runner
from pools import TOLERANCE, deviation

MASKS = [TOP_LEFT, BOTTOM_RIGHT, FULL]


def hidden_pairs(mask, queries, keys):
    """As attention.h defines the masks."""
    query, key = torch.arange(queries)[:, None], torch.arange(keys)[None]
    last = {TOP_LEFT: query, BOTTOM_RIGHT: query + keys - queries, FULL: query * 0 + keys}[mask]
    return key > last


class Problem:
    """Tensors with room around the entries, in views with strides of their own."""

    def __init__(self, entries, heads, rows=(40, 40), dims=(8, 4), seed=0, dtype=torch.float64):
        self.entries, self.heads, self.scale = entries, heads, 0.3
        random_ = torch.Generator().manual_seed(seed)
        all_q = max((e[4] for e in entries), default=0) + heads[0] + heads[2] + 1
        all_kv = max((e[5] for e in entries), default=0) + heads[1] + heads[3] + 1

        def tensor(rows, heads, dim, wide=False):
            made = torch.randn(rows + 2, heads + 1, dim + 3, generator=random_,
                               dtype=torch.float64)
            return made.to(accumulating(made.to(dtype)) if wide else dtype)[1:-1, 1:, 2:-1]

        self.q, self.k = (tensor(rows[i], (all_q, all_kv)[i], dims[0]) for i in range(2))
        self.v = tensor(rows[1], all_kv, dims[1])
        self.o, self.d_o = (tensor(rows[0], all_q, dims[1]) for _ in range(2))
        self.lse = tensor(rows[0], all_q, 1, wide=True)
        self.gradients = [tensor(*t.shape, wide=True) for t in (self.q, self.k, self.v)]

    def places(self, entry):
        q_row, queries, kv_row, keys, q_head, kv_head, _ = entry
        q_head, kv_head = q_head + self.heads[2], kv_head + self.heads[3]
        return ((slice(q_row, q_row + queries), slice(q_head, q_head + self.heads[0])),
                (slice(kv_row, kv_row + keys), slice(kv_head, kv_head + self.heads[1])))

    def scores(self, entry):
        queries, keys = self.places(entry)
        q, k = self.q[queries], self.k[keys]
        scores = torch.einsum("qhd,khd->hqk", q.to(accumulating(q)), expanded(q, k)) * self.scale
        return scores.masked_fill(hidden_pairs(entry[6], entry[1], entry[3]), -torch.inf)

    def bytes(self):
        return torch.tensor(self.entries, dtype=torch.int64).numpy().tobytes()

    def forward(self):
        """(got, right) of O and LSE, everything around the entries among them."""
        right = self.o.clone(), self.lse.clone()
        for entry in self.entries:
            queries, keys = self.places(entry)
            scores = self.scores(entry)
            right[1][queries] = scores.logsumexp(-1).T[:, :, None]
            p = scores.softmax(-1).nan_to_num(0.0)  # rows that see no key
            right[0][queries] = torch.einsum(
                "hqk,khd->qhd", p, expanded(self.q[queries], self.v[keys])).to(self.o.dtype)
        got = whole(self.o), whole(self.lse)
        Runner(DenseKernels()).forward(self.bytes(), self.heads, self.scale, self.q, self.k,
                                       self.v, inner(got[0]), inner(got[1]))
        return zip(got, map(around, (self.o, self.lse), right))

    def backward(self):
        """(got, right) of dQ, dK and dV."""
        right = [t.clone() for t in self.gradients]
        for entry in self.entries:
            queries, keys = self.places(entry)
            p = (self.scores(entry) - self.lse[queries][:, :, 0].T[:, :, None]).exp()
            parts = gradients_from(p, self.d_o[queries], self.q[queries], self.k[keys],
                                   self.v[keys], self.o[queries], self.scale)
            for total, rows, part in zip(right, (queries, keys, keys), parts):
                total[rows] += part
        got = [whole(t) for t in self.gradients]
        Runner(DenseKernels()).backward(self.bytes(), self.heads, self.scale, self.q, self.k,
                                        self.v, self.o, self.lse, self.d_o, *map(inner, got))
        return zip(got, map(around, self.gradients, right))


def whole(view):
    """A copy of the memory that a tensor of Problem is a view of."""
    return view._base.clone()


def inner(memory):
    return memory[1:-1, 1:, 2:-1]


def around(view, inside):
    memory = whole(view)
    inner(memory)[:] = inside
    return memory


def assert_right(problem, backward_only=False):
    for got, right in (*(() if backward_only else problem.forward()), *problem.backward()):
        assert deviation(got, right) < TOLERANCE, problem.entries


SIZES = range(6)


@pytest.mark.parametrize("mask", MASKS)
def test_every_tiny_shape_is_right(mask):
    for queries, keys in itertools.product(SIZES, SIZES):
        assert_right(Problem([(3, queries, 7, keys, 1, 2, mask)], (4, 2, 0, 0)))


def random_entries(random_, rows, overlapping_queries):
    """Keys are shared; queries are not, unless asked for."""
    entries, row = [], random_.randrange(3)
    while row < rows:
        queries = random_.choice([0, 1, 2, 5, random_.randrange(12)])
        queries = min(queries, rows - row)
        keys = random_.choice([0, 1, queries, random_.randrange(20)])
        entries.append((row, queries, random_.randrange(rows - keys + 1), keys,
                        random_.choice([0, 4]), random_.choice([0, 1, 2]),
                        random_.choice(MASKS)))
        row += 0 if overlapping_queries and random_.random() < 0.5 else queries + 1
        if len(entries) > 40:
            break
    random_.shuffle(entries)
    return entries


@pytest.mark.parametrize("overlapping", [False, True])
def test_random_entries_are_right(overlapping):
    seed = random.SystemRandom().randrange(1 << 30)
    print("seed", seed)
    random_ = random.Random(seed)
    for case in range(25):
        heads = random_.choice([(4, 2), (4, 4), (2, 1), (1, 1), (4, 1)]) + (
            random_.randrange(3), random_.randrange(3))
        entries = random_entries(random_, 40, overlapping)
        assert_right(Problem(entries, heads, seed=seed + case), backward_only=overlapping)


def test_heads_that_overlap_in_part_keep_to_an_order():
    entries = [(0, 4, 0, 8, 0, head, FULL) for head in (0, 1, 2, 3)]
    assert_right(Problem(entries, (2, 2, 0, 0)), backward_only=True)


def test_a_shift_of_heads_moves_every_entry():
    entries = [(0, 5, 2, 9, 3, 1, BOTTOM_RIGHT), (7, 3, 2, 9, 3, 1, FULL)]
    assert_right(Problem(entries, (2, 1, -3, 2)))


def test_the_same_entry_twice_counts_twice():
    for mask in MASKS:
        assert_right(Problem([(2, 5, 3, 5, 0, 0, mask)] * 2, (2, 1, 0, 0)), backward_only=True)


def test_the_same_call_gives_the_same_bits():
    problem = Problem([(i, 3, 0, 20, 0, 0, FULL) for i in range(8)], (4, 2, 0, 0),
                      dtype=torch.float32)
    bits = [[got for got, _ in problem.backward()] for _ in range(3)]
    for again in bits[1:]:
        assert all(map(torch.equal, bits[0], again))


def test_splits_of_a_block_add_up():
    """As the runtime has it: a square and the rectangle before it; and cut at any key."""
    block = [(4, 12, 1, 30, 0, 0, BOTTOM_RIGHT)]
    right = [right for _, right in Problem(block, (4, 2, 0, 0)).backward()]
    for split in ([(4, 12, 19, 12, 0, 0, TOP_LEFT), (4, 12, 1, 18, 0, 0, FULL)],
                  [(4, 12, 1, 7, 0, 0, FULL), (4, 12, 8, 11, 0, 0, FULL),
                   (4, 12, 19, 12, 0, 0, BOTTOM_RIGHT)]):
        for (got, _), whole_ in zip(Problem(split, (4, 2, 0, 0)).backward(), right):
            assert deviation(got, whole_) < TOLERANCE


def pieces(*entries):
    return _entries.pieces_of(entries)[0]


def test_squares_rectangles_and_blocks_are_joined():
    halves = pieces((8, 4, 18, 4, 0, 0, TOP_LEFT), (8, 4, 10, 8, 0, 0, FULL))
    assert halves == pieces((8, 4, 10, 12, 0, 0, BOTTOM_RIGHT)) and len(halves) == 1
    blocks = [(i * 4, 4, 10, (i + 1) * 4, 0, 0, BOTTOM_RIGHT) for i in (2, 0, 1)]
    assert pieces(*blocks) == pieces((0, 12, 10, 12, 0, 0, BOTTOM_RIGHT))
    for apart in [(4, 4, 10, 8, 1, 0), (4, 4, 10, 8, 0, 1), (4, 4, 11, 8, 0, 0),
                  (5, 4, 10, 8, 0, 0), (4, 4, 10, 9, 0, 0)]:
        assert len(pieces((0, 4, 10, 4, 0, 0, BOTTOM_RIGHT), (*apart, BOTTOM_RIGHT))) == 2


def test_many_sequences_are_several_calls():
    count = 1300
    problem = Problem([(i, 1, i, 1, 0, 0, TOP_LEFT) for i in range(count)], (1, 1, 0, 0),
                      rows=(count, count))
    calls, _ = _entries.program_of(problem.bytes(), 1, 1, torch.device("cpu"), 0)
    assert [len(call.cu[0]) - 1 for call in calls] == [512, 512, 276]
    assert_right(problem)


def test_sequences_that_share_no_key_are_one_call():
    entries = [(i * 5, 5, i * 5, 5, head, head, BOTTOM_RIGHT)
               for i in range(8) for head in (0, 2)]
    calls, _ = _entries.program_of(Problem(entries, (2, 2, 0, 0)).bytes(), 2, 2,
                                   torch.device("cpu"), 0)
    assert len(calls) == 1
