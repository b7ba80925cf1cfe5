"""From sample lengths to microbatches: which sequences this replica trains on, packed, grouped into
pools and planned ahead of time.

    pool = libra.Pool(workers=P * CP)
    planner = libra.Planner(pool, options)
    sampler = libra.PooledBatchSampler(lengths, seq_len=65536, gbs=128, pool_size=P,
                                       planner=planner)
    loader = DataLoader(libra.PackedDataset(dataset), batch_sampler=sampler,
                        collate_fn=libra.Collator(), num_workers=2)
    for batch in loader:
        loss = model(**batch).loss          # batch["libra_plan"] reaches libra.attention

Windows, pools and plans depend on the lengths and the options alone, so every rank that holds the
same ones sees the same, without a word to the others.
"""

import hashlib
import numbers
import operator

from torch.utils.data import Sampler

from libra import _core
from libra._lengths import read_lengths
from libra._pool import Pool
from libra._typed import typed


class Planner:
    """Plans of the pools that this rank belongs to, made on a C++ thread ahead of the trainer.

    Args:
      pool: the `Pool`.
      options: `PlanOptions`.
      prefetch: windows (optimizer steps) that are planned ahead, at most.
      device_profile: balance its seconds, a built-in name or a JSON file; None: FLOPs.
      memory_cap: most extra bytes of a rank; more chunks and refetch are tried first.
      cluster: plan for its links, a preset ("hgx-h200") or a JSON file: keys cross to a node once,
        more head shards where they fill the links, nothing where moving does not pay. Ranks are
        taken to fill its nodes in order, as torchrun's do.

    Raises ConfigError for a cluster with a memory cap, InputError for files that are not there.
    """

    @typed
    def __init__(self, pool: Pool, options: _core.PlanOptions, *, prefetch: int = 2,
                 device_profile: str | None = None, memory_cap: int | None = None,
                 cluster: str | None = None):
        if prefetch < 1:
            raise _core.ConfigError(f"prefetch is {prefetch}: it must be at least 1")
        self.pool = pool
        self.options = options
        self.prefetch = prefetch
        self.balances = device_profile or cluster or "flops"
        self.planning = _core.Planning(options, device_profile, memory_cap, cluster,
                                       pool.ranks)
        self._windows = None
        self._waited_before = 0.0

    @property
    def waited_seconds(self):
        """How long the trainer has waited for plans, in total."""
        return self._waited_before + (self._windows.waited_seconds if self._windows else 0.0)

    def metrics(self):
        """A plain dict beside `Pool.metrics()`."""
        return {"libra/planner_wait_seconds": self.waited_seconds}

    def attach(self, windows):
        """Counts the waits for these windows from now on."""
        self._waited_before = self.waited_seconds
        self._windows = windows

    def check(self, dp_rank, pool_size):
        """Raises ConfigError unless the pool is that of this replica."""
        cp = self.options.cp
        if self.pool.workers != pool_size * cp:
            raise _core.ConfigError(
                f"the pool has {self.pool.workers} workers: P {pool_size} x CP {cp} needs "
                f"{pool_size * cp}")
        if self.pool.worker // cp != dp_rank % pool_size:
            raise _core.ConfigError(
                f"this rank is replica {self.pool.worker // cp} of its pool and dp_rank is "
                f"{dp_rank}: P {pool_size} consecutive replicas of {cp} ranks form a pool")


class PackedBatch(list):
    """One microbatch of one replica: the documents of a packed sequence, as indices.

    Attributes:
      samples: [(document, first token, tokens), ...] in order; a document may be cut.
      seq_len: tokens of the packed sequence, padding included (with packing "wlb" its own).
      runs: [(begin, end), ...] of its tokens that this rank holds, in local order.
      plan: id of the plan; None without a planner.
      epoch, window, ga_index: where in the run it is; windows count within the epoch.
      lengths: {document: tokens} as promised; documents: how many there are in all. What the data
        set is held to.
    """

    documents = 0
    lengths = {}
    plan = None

    def __init__(self, samples, **attributes):
        super().__init__(document for document, _, _ in samples)
        self.samples = samples
        self.__dict__.update(attributes)


class PooledBatchSampler(Sampler):
    """This replica's packed sequences, one a microbatch: a batch sampler for a DataLoader.

    Yields `PackedBatch`es, GBS / DP of them an optimizer step, the same number on every rank. Like
    torch's samplers it repeats its epoch until `set_epoch`.

    Args:
      lengths: whatever `read_lengths` takes.
      seq_len: tokens of a packed sequence, as a number or "64K".
      gbs: packed sequences of an optimizer step.
      pool_size: P, consecutive replicas that form a pool.
      dp, dp_rank: replicas, and which this is; from the group of the planner's pool and its CP, or
        the ranks of the job, unless given.
      planner: a `Planner`; None: sequences are grouped and not planned.
      packing: "first-fit", "best-fit-decreasing" or "concat"; or "wlb", WLB-LLM's: sequences of a
        step are repacked into sequences of like work and unlike length, up to 1.25 * seq_len.
        Outliers wait until there is one for each sequence, so steps train on other samples.
      equal_cost_tokens: of "wlb" only: the length at which a sample's attention costs as much as
        its linear layers.
      oversize: of documents longer than seq_len: "error", "truncate", "split" or "drop".
      keep_empty: documents without a token stay, as samples of length 0.
      order: "shuffled", "file-order-once" or "file-order".
      last_window: of sequences that fill no step at the end of an epoch: "carry" them into the next
        epoch's first step, so that nothing is lost, or "drop" them.
      grouping: "vrsp_refined", "vrsp" (the paper's), "production", "zigzag" or "zigzag_swap".
      by_load: pools of like load share a gradient-accumulation index.
      seed: of the order.

    Raises ConfigError for options that break a rule, documents that are too long under "error" and
    an epoch that fills no step; InputError for lengths that cannot be.
    """

    @typed
    def __init__(self, lengths, *, seq_len: int | str, gbs: int, pool_size: int,
                 dp: int | None = None, dp_rank: int | None = None, planner: Planner | None = None,
                 packing: str = "first-fit", oversize: str = "error", keep_empty: bool = True,
                 order: str = "shuffled", last_window: str = "carry",
                 grouping: str = "vrsp_refined", by_load: bool = False, seed: int = 0,
                 equal_cost_tokens: float | None = None):
        if seed < 0:
            _core.refuse("PooledBatchSampler", "seed", seed, "at least 0")
        self._lengths = read_lengths(lengths)
        seq_len = _core.parse_size(seq_len) if isinstance(seq_len, str) else seq_len
        # numpy's numbers would travel into states, where 8 and np.int64(8) are not the same.
        seq_len, gbs, pool_size, seed = map(operator.index, (seq_len, gbs, pool_size, seed))
        self.dp, self.dp_rank = map(operator.index, _replica(dp, dp_rank, planner))
        self.gbs, self.pool_size, self.seq_len = gbs, pool_size, seq_len
        _core.check_window(gbs, self.dp, pool_size)
        _core.assign_pools([0] * pool_size, pool_size, grouping)  # refuses a word that is none
        if not 0 <= self.dp_rank < self.dp:
            raise _core.ConfigError(f"dp_rank is {self.dp_rank}: of DP {self.dp} it is 0 to "
                                    f"{self.dp - 1}")
        if planner:
            planner.check(self.dp_rank, pool_size)
        self._planner = planner
        self._pools = dict(pool_size=pool_size, grouping=grouping, by_load=by_load)
        # What decides which replica has which sequences of a window.
        self._sharing = dict(self._pools, dp=self.dp,
                             balances=planner.balances if planner else "flops")
        self._wlb = _wlb_options(packing, equal_cost_tokens, gbs, seq_len)
        words = dict(seq_len=seq_len, gbs=gbs, packing="first-fit" if self._wlb else packing,
                     oversize=oversize, keep_empty=keep_empty, order=order,
                     last_window=last_window, seed=seed)
        self._options = _core.WindowOptions(**words)
        _core.check_windows(self._lengths, self._options)
        if self._wlb:
            words["wlb"] = float(equal_cost_tokens)
        self._identity = _identity(self._lengths, words)
        self._counter = None
        self._counts = {}  # windows by epoch
        self._epoch = 0
        self._done = 0  # microbatches of the epoch handed out
        self._resumed = False
        self._latest = 0  # iteration, or order to begin elsewhere; older ones are not counted
        self._waiting_tokens = 0
        self._stream = None

    @property
    def microbatches(self):
        """GBS / DP: microbatches of an optimizer step."""
        return self.gbs // self.dp

    def metrics(self):
        """A plain dict beside `Pool.metrics()`: with packing "wlb" the tokens of samples that wait
        for later steps."""
        return {"libra/wlb_waiting_tokens": self._waiting_tokens} if self._wlb else {}

    def __len__(self):
        """Microbatches of this epoch. Packs it, the first time: 0.1 s a million documents."""
        return self._windows_of(self._epoch) * self.microbatches

    def _windows_of(self, epoch):
        if epoch not in self._counts:
            self._counter = self._counter or _core.WindowCounter(self._lengths, self._options)
            self._counts[epoch] = self._counter.windows_in(epoch)
        return self._counts[epoch]

    @typed
    def set_epoch(self, epoch: int):
        """What the next iteration yields. Does nothing if it is the epoch that was resumed."""
        _check_count("PooledBatchSampler.set_epoch", "epoch", epoch)
        if epoch != self._epoch:
            self._go_to(int(epoch), 0, resumed=False)

    def _go_to(self, epoch, done, resumed):
        self._epoch, self._done, self._resumed = epoch, done, resumed
        self._latest += 1

    @typed
    def state_dict(self, microbatches: int | None = None):
        """Where the run is: a dict of ints, strings and such, for torch.save or JSON. microbatches:
        of this epoch, trained on; None: handed out so far, which a DataLoader with workers is ahead
        of."""
        done = self._done if microbatches is None else int(microbatches)
        return dict(epoch=self._epoch, microbatches=done, gbs=self.gbs, sharing=self._sharing,
                    identity=self._identity)

    @typed
    def load_state_dict(self, state: dict):
        """Goes on where `state_dict()` was taken, in the middle of a step too.

        An iterator from before goes on where it was, and counts no more. Raises ConfigError for
        what is no state, for other lengths or options; and in the middle of a step for another DP,
        P, grouping or device profile, which at the end of one may change.
        """
        self._check_state(state)
        if state["identity"] != self._identity or state["gbs"] != self.gbs:
            raise _core.ConfigError(
                "the state is of other lengths or options (seq_len, gbs, packing, oversize, order, "
                "last_window, seed): resume with the same ones")
        then = state["sharing"]
        windows, rest = divmod(state["microbatches"], state["gbs"] // then["dp"])
        self._check_place(state["epoch"], state["microbatches"], windows + bool(rest))
        changed = [name for name, value in self._sharing.items() if then[name] != value]
        if rest and changed:
            raise _core.ConfigError(
                "the state is in the middle of a step, of another "
                + ", ".join(f"{name} ({then[name]}, now {self._sharing[name]})"
                            for name in changed)
                + ": resume with the same, or from the end of a step")
        self._go_to(int(state["epoch"]), windows * self.microbatches + int(rest), resumed=True)

    def _check_state(self, state):
        sharing = state.get("sharing")
        shared = sharing if isinstance(sharing, dict) else {}
        missing = ({"epoch", "microbatches", "gbs", "sharing", "identity"} - set(state)
                   or set(self._sharing) - set(shared))
        if missing:
            raise _core.ConfigError(
                f"this is no state of a sampler, or one of another version: it has no "
                f"{', '.join(sorted(missing))}")
        for name, value in (*state.items(), ("dp", shared["dp"])):
            if name in ("epoch", "microbatches", "gbs", "dp"):
                _check_count("load_state_dict", f"state's {name}", value)
        if not 0 < shared["dp"] <= state["gbs"]:
            _core.refuse("load_state_dict", "state's dp", shared["dp"], "from 1 to gbs")

    def _check_place(self, epoch, microbatches, windows):
        if windows > self._windows_of(epoch):
            raise _core.ConfigError(
                f"the state is at microbatch {microbatches}, and epoch {epoch} has only "
                f"{self._windows_of(epoch)} steps")

    def __iter__(self):
        if not self._resumed:
            self._done = 0
        self._resumed = False
        self._latest += 1
        this, epoch = self._latest, self._epoch
        number, first = divmod(self._done, self.microbatches)
        windows = self._windows_from(epoch, number)
        while (window := windows.take(epoch)) is not None:
            sequences = window.microbatches(self.dp, self.dp_rank)
            for ga_index in range(first, len(sequences)):
                batch = self._batch(window, sequences, ga_index, number)
                self._waiting_tokens = window.waiting_tokens
                self._done += this == self._latest
                yield batch
            number, first = number + 1, 0

    def _windows_from(self, epoch, number):
        """A stream that comes to this window next: the one at hand, or a new one."""
        if self._stream and self._stream.next_is(epoch, number):
            return self._stream
        planner = self._planner
        self._stream = _Windows(_core.WindowPlanner(
            self._lengths, self._options, dp=self.dp, dp_rank=self.dp_rank,
            from_epoch=epoch, skip_windows=number, **self._pools,
            prefetch=planner.prefetch if planner else 2,
            planning=planner.planning if planner else None, wlb=self._wlb), epoch, number)
        if planner:
            planner.attach(self._stream.core)
        return self._stream

    def _batch(self, window, sequences, ga_index, number):
        samples = window.samples(sequences[ga_index])
        documents = [document for document, _, _ in samples]
        tokens = window.tokens(sequences[ga_index])
        plan, runs = None, [(0, tokens)]
        if self._planner:
            plan = self._planner.pool.adopt(window.plans[ga_index])
            runs = plan.runs
        lengths = dict(zip(documents, self._lengths[documents].tolist()))
        return PackedBatch(samples, seq_len=tokens, runs=runs, plan=plan.id if plan else None,
                           epoch=window.epoch, window=number, ga_index=ga_index,
                           documents=len(self._lengths), lengths=lengths)


class _Windows:
    """A stream of windows with one that may have been taken too early: the next epoch's first."""

    def __init__(self, core, epoch, number):
        self.core = core
        self._held = None
        self._at = (epoch, number)

    def next_is(self, epoch, number):
        return self._at == (epoch, number)

    def take(self, epoch):
        window = self._held or self.core.next()
        self._held = None
        if window.epoch != epoch:
            self._held, self._at = window, (window.epoch, 0)
            return None
        self._at = (epoch, self._at[1] + 1)
        return window


def _check_count(where, name, value):
    if not isinstance(value, numbers.Integral) or not 0 <= value < 1 << 63:
        _core.refuse(where, name, value, "an int, at least 0")


def _replica(dp, dp_rank, planner):
    if dp is not None and dp_rank is not None:
        return dp, dp_rank
    cp = planner.options.cp if planner else 1
    ranks, rank = (planner.pool.group_size, planner.pool.group_rank) if planner else _job()
    if dp is None and ranks % cp:
        raise _core.ConfigError(
            f"CP {cp} does not divide the {ranks} ranks: cp ranks share each sequence, so there "
            f"must be DP * CP ranks")
    return ranks // cp if dp is None else dp, rank // cp if dp_rank is None else dp_rank


def _job():
    import torch.distributed as dist

    known = dist.is_available() and dist.is_initialized()
    return (dist.get_world_size(), dist.get_rank()) if known else (1, 0)


def _wlb_options(packing, equal_cost_tokens, gbs, seq_len):
    if packing != "wlb":
        if equal_cost_tokens is not None:
            raise _core.ConfigError(
                f'equal_cost_tokens is for packing "wlb", and packing is "{packing}": leave it out')
        return None
    if equal_cost_tokens is None:
        raise _core.ConfigError(
            'packing "wlb" needs equal_cost_tokens, the length at which attention costs as much as '
            "the linear layers: 2 * a layer's active parameters / (q_heads * (head_dim + "
            "value_dim))")
    return _core.WlbOptions(bins=gbs, bin_tokens=seq_len, token_cap=1.25,
                            equal_cost_tokens=float(equal_cost_tokens), delay=True)


def _identity(lengths, words):
    digest = hashlib.blake2b(lengths.tobytes(), digest_size=16)
    digest.update(repr(sorted(words.items())).encode())
    return digest.hexdigest()
