"""Attention over a list of entries (libra/attention/attention.h) by kernels that take sequences end
to end (libra/kernels.py): what libra._core calls for Pool(kernels=...).

Entries become pieces, of which every query sees a key and every mask is bottom-right causal or
full. Pieces that share no query and no key (of a head) form a round: what a round adds to gradients
goes to rows of its own, so sums are the same every time, and a round's copies are no larger than
the tensors.
"""

import bisect
import collections
import contextlib
import functools
import itertools
import math
import operator
from array import array
from typing import NamedTuple

import torch

from libra._core import ConfigError

TOP_LEFT, BOTTOM_RIGHT, FULL = range(3)  # as Mask in attention.h
MAX_SEQUENCES = 512  # of a call: FlashAttention's backward pads each by up to 128 fp32 rows


class Piece(NamedTuple):
    causal: bool  # bottom-right, queries <= keys
    q_head: int
    kv_head: int
    q_row: int
    queries: int
    kv_row: int
    keys: int


class Call(NamedTuple):
    """One call of the kernels."""
    causal: bool
    cu: torch.Tensor  # [2, sequences + 1] int32: queries, keys
    longest: tuple
    tokens: tuple
    starts: torch.Tensor  # [2, sequences]: first rows
    heads: torch.Tensor  # [2, sequences]: first heads


class Blank(NamedTuple):
    """Queries that see no key."""
    rows: torch.Tensor
    heads: torch.Tensor


def pieces_of(entries):
    """(pieces, [(first row, rows, head) of queries that see no key])."""
    pieces, blank = [], []
    for q_row, queries, kv_row, keys, q_head, kv_head, mask in entries:
        hidden = queries if keys == 0 else max(0, queries - keys) if mask == BOTTOM_RIGHT else 0
        square = 0 if mask == FULL else min(queries, keys)
        rest = queries - square - hidden
        if hidden:
            blank.append((q_row, hidden, q_head))
        if square and keys:
            seen = keys if mask == BOTTOM_RIGHT else square
            pieces.append(Piece(True, q_head, kv_head, q_row + hidden, square, kv_row, seen))
        if rest and keys:
            pieces.append(Piece(False, q_head, kv_head, q_row + square, rest, kv_row, keys))
    return joined(pieces), blank


def joined(pieces):
    """Fewer pieces of the same pairs: a square and the rectangle before it, and blocks of a sample
    that follow each other, are one causal piece."""
    before = collections.defaultdict(list)  # rectangles by their queries and where their keys end
    for p in pieces:
        if not p.causal:
            before[p.q_head, p.kv_head, p.q_row, p.queries, p.kv_row + p.keys].append(p)
    causal = []
    for piece in filter(operator.attrgetter("causal"), pieces):
        rectangles = before.get(piece[1:6])
        if rectangles:
            rectangle = rectangles.pop()
            piece = piece._replace(kv_row=rectangle.kv_row, keys=rectangle.keys + piece.keys)
        causal.append(piece)
    blocks = []
    for piece in sorted(causal):
        last = blocks[-1] if blocks else None
        follows = last and piece == last._replace(
            q_row=last.q_row + last.queries, queries=piece.queries,
            keys=last.keys + piece.queries)
        if follows:
            blocks[-1] = last._replace(queries=last.queries + piece.queries, keys=piece.keys)
        else:
            blocks.append(piece)
    return blocks + [piece for those in before.values() for piece in those]


def rounds_of(pieces, q_heads, kv_heads):
    """The pieces, longest first where they share keys, in rounds."""
    q_lane = _lanes({p.q_head for p in pieces}, q_heads)
    kv_lane = _lanes({p.kv_head for p in pieces}, kv_heads)
    rest = sorted(pieces, key=lambda p: (p.kv_head, p.kv_row, -p.keys, p.q_row, p.causal))
    while rest:
        round_, later = [], []
        queries, keys = collections.defaultdict(list), collections.defaultdict(list)
        for piece in rest:
            q_place = _place(queries[q_lane(piece.q_head)], piece.q_row, piece.queries)
            kv_place = _place(keys[kv_lane(piece.kv_head)], piece.kv_row, piece.keys)
            if q_place is None or kv_place is None:
                later.append(piece)
                continue
            queries[q_lane(piece.q_head)].insert(q_place, (piece.q_row, piece.queries))
            keys[kv_lane(piece.kv_head)].insert(kv_place, (piece.kv_row, piece.keys))
            round_.append(piece)
        yield round_
        rest = later


def _lanes(heads, width):
    """What tells heads apart, unless some overlap in part."""
    ordered = sorted(heads)
    apart = all(after - head >= width for head, after in zip(ordered, ordered[1:]))
    return (lambda head: head) if apart else (lambda head: 0)


def _place(spans, begin, count):
    """Where among disjoint (begin, count), in order, this one goes; None if it meets one."""
    place = bisect.bisect(spans, (begin,))
    if place > 0 and sum(spans[place - 1]) > begin:
        return None
    if place < len(spans) and spans[place][0] < begin + count:
        return None
    return place


@functools.lru_cache(maxsize=2048)
def program_of(entries, q_heads, kv_heads, device, stream):
    """(calls, Blank or None) of entries, 7 int64 each, as attention.h has them. Kept, since layer
    after layer has the same; by stream, which the tables are copied on."""
    pieces, blank = pieces_of(zip(*[iter(array("q", entries))] * 7))
    table = functools.partial(_table, device=device)
    calls = []
    for round_ in rounds_of(pieces, q_heads, kv_heads):
        for causal in (True, False):
            group = [piece for piece in round_ if piece.causal == causal]
            calls += [_call_of(group[begin:begin + MAX_SEQUENCES], table)
                      for begin in range(0, len(group), MAX_SEQUENCES)]
    if not blank:
        return calls, None
    rows, heads = zip(*((q_row + i, head) for q_row, count, head in blank for i in range(count)))
    return calls, Blank(table(rows), table(heads))


def _call_of(pieces, table):
    lengths = [p.queries for p in pieces], [p.keys for p in pieces]
    ends = [list(itertools.accumulate(each, initial=0)) for each in lengths]
    return Call(pieces[0].causal, table(ends, torch.int32), tuple(map(max, lengths)),
                tuple(each[-1] for each in ends),
                table([[p.q_row for p in pieces], [p.kv_row for p in pieces]]),
                table([[p.q_head for p in pieces], [p.kv_head for p in pieces]]))


def _table(values, dtype=torch.int64, *, device):
    """Copied without a wait: a pass may have begun."""
    on_gpu = device.type == "cuda"
    return torch.tensor(values, dtype=dtype, pin_memory=on_gpu).to(device, non_blocking=True)


class Runner:
    """Kernels, as libra._core calls them: `entries` as bytes, `heads` (q_heads, kv_heads, and what
    is added to the entries' q_head and kv_head), tensors [rows, heads, dim] that are views."""

    def __init__(self, kernels):
        self._kernels = kernels
        self._met = {}  # kind of call: its largest sizes so far

    def forward(self, entries, heads, scale, q, k, v, o, lse):
        with _undisturbed(q.device):
            calls, blank = _program(entries, heads, q)
            lse = lse.squeeze(2)
            for call in calls:
                queries, keys = _indices(call, heads)
                results = self._kernels.forward(
                    q[queries], k[keys], v[keys], *call.cu, *call.longest, call.causal, scale)
                out, sums = _checked("forward", results, q.device, dict(
                    out=((call.tokens[0], heads[0], v.shape[2]), (q.dtype,)),
                    lse=((heads[0], call.tokens[0]), (lse.dtype,))))
                o[queries] = out
                lse[queries] = sums.T
            if blank:
                queries = _index(blank.rows, blank.heads + heads[2], heads[0])
                o[queries] = o.new_zeros(())
                lse[queries] = lse.new_full((), -math.inf)

    def backward(self, entries, heads, scale, q, k, v, o, lse, d_o, dq, dk, dv):
        with _undisturbed(q.device):
            calls, _ = _program(entries, heads, q)
            lse = lse.squeeze(2)
            dtypes = q.dtype, lse.dtype
            for call in calls:
                queries, keys = _indices(call, heads)
                results = self._kernels.backward(
                    d_o[queries], q[queries], k[keys], v[keys], o[queries],
                    lse[queries].T.contiguous(), *call.cu, *call.longest, call.causal, scale)
                parts = _checked("backward", results, q.device, dict(
                    dq=((call.tokens[0], heads[0], q.shape[2]), dtypes),
                    dk=((call.tokens[1], heads[1], k.shape[2]), dtypes),
                    dv=((call.tokens[1], heads[1], v.shape[2]), dtypes)))
                for total, rows, part in zip((dq, dk, dv), (queries, keys, keys), parts):
                    total[rows] += part

    def prepare_forward(self, entries, heads, scale, q, k, v, o, lse):
        """What a first call may stop the host for, while nobody waits for it."""
        if self._is_larger("forward", entries, heads, q, v):
            self.forward(entries, heads, scale, q, k, v, *map(torch.empty_like, (o, lse)))

    def prepare_backward(self, entries, heads, scale, q, k, v, o, lse, d_o, *gradients):
        if self._is_larger("backward", entries, heads, q, v):
            self.backward(entries, heads, scale, q, k, v, o, lse, d_o,
                          *map(torch.empty_like, gradients))

    def _is_larger(self, method, entries, heads, q, v):
        calls, _ = _program(entries, heads, q)
        larger = False
        for call in calls if q.is_cuda else ():
            kind = method, call.causal, heads[:2], q.dtype, q.shape[2], v.shape[2]
            sizes = *call.tokens, *call.longest, call.cu.shape[1]
            largest = tuple(map(max, sizes, self._met.get(kind, sizes)))
            larger = larger or largest != self._met.get(kind)
            self._met[kind] = largest
        return larger


@contextlib.contextmanager
def _undisturbed(device):
    """By what the caller has on, and by a current device that is another."""
    with torch.no_grad(), torch.autocast(device.type, enabled=False):
        with torch.cuda.device(device) if device.type == "cuda" else contextlib.nullcontext():
            yield


def _program(entries, heads, q):
    stream = torch.cuda.current_stream(q.device).cuda_stream if q.is_cuda else 0
    return program_of(entries, heads[0], heads[1], q.device, stream)


def _indices(call, heads):
    """Of a call's queries, and of its keys, in their tensors."""
    found = []
    for side in range(2):
        lengths = call.cu[side].diff()
        each = functools.partial(torch.repeat_interleave, repeats=lengths,
                                 output_size=call.tokens[side])
        rows = torch.arange(call.tokens[side], device=lengths.device)
        rows += each(call.starts[side] - call.cu[side, :-1])
        found.append(_index(rows, each(call.heads[side]) + heads[2 + side], heads[side]))
    return found


def _index(rows, first_heads, heads):
    return rows[:, None], first_heads[:, None] + torch.arange(heads, device=rows.device)


def _checked(method, results, device, wanted):
    """The results, which must be tensors of these shapes and of one of these dtypes."""
    names = ", ".join(wanted)
    if not isinstance(results, (tuple, list)) or len(results) != len(wanted):
        raise ConfigError(f"the kernels' {method} must return ({names}), not "
                          f"{_described(results)}")
    for (name, (shape, dtypes)), result in zip(wanted.items(), results):
        fits = isinstance(result, torch.Tensor) and result.shape == shape
        if not fits or result.dtype not in dtypes or result.device != device:
            kinds = " or ".join(map(str, dict.fromkeys(dtypes)))
            raise ConfigError(f"the kernels' {method} returned {name} as {_described(result)}: it "
                              f"must be {list(shape)} {kinds} on {device}")
    return results


def _described(value):
    if isinstance(value, torch.Tensor):
        return f"{list(value.shape)} {value.dtype} on {value.device}"
    if isinstance(value, (tuple, list)):
        return f"{len(value)} values"
    return f"a {type(value).__name__}"
