"""A pool's workers as the ranks of a process group."""

import atexit
import collections
import contextlib
import operator
import os
import pickle
import socket
import time
import uuid
import weakref
from collections.abc import Iterable
from datetime import timedelta

import torch
import torch.distributed as dist

from libra import _core
from libra._differences import differences
from libra._entries import Runner
from libra._plans import Plan
from libra._port import TorchPort
from libra._tensors import DTYPES, dtype_advice, lse_dtype, rows, view
from libra._typed import typed
from libra.kernels import Kernels

LONGEST_DEADLINE = 1e6  # seconds
DEFAULT_CONNECTIONS = 8  # of CUDA: two streams of a pass and its three lanes of copies wait in five

_open_pools = weakref.WeakSet()
_made = collections.Counter()  # pools by their ranks: all of these make them in one order


atexit.register(_core.await_left_behind)  # after the pools are closed


@atexit.register
def _close_pools():
    for pool in list(_open_pools):
        pool.close()


class Pool:
    """The ranks that balance attention among themselves: P replicas of CP ranks.

    Args:
      group: a `ProcessGroup` or `DeviceMesh` of ranks in the order (replica, token part, TP rank),
        TP innermost; None: the default group, or this process alone without torch.distributed.
        With pipeline parallelism: of one stage.
      workers: ranks of a pool, P * CP, consecutive in the group; None: all of it.
      device: where q, k and v are; None: this process's current GPU if the group's backend is
        nccl, else "cpu". On GPUs the pool's ranks are processes with a GPU each.
      deadline: seconds that a pass waits for another rank before it fails on every rank.
      keep: the latest plans that the pool keeps, so that their ids are good: at least the
        microbatches of a step, times a pipeline's depth, and those that a DataLoader fetches ahead.
      alone: a pool of this rank only, in whatever job: for evaluation.
      transport: on GPUs, "peer", copy engines over CUDA IPC, within one host; "nccl"; or "auto",
        copy engines within each host and NCCL between hosts.
      one_queue: on GPUs, keep to an order of exchanges that is right also where all streams share a
        hardware queue. Guests of a busy rank then wait for it if plans have more than 2 chunks.
        None: on all ranks, if CUDA_DEVICE_MAX_CONNECTIONS is below 8, CUDA's default, on any.
      kernels: an object that computes attention instead of cuDNN and the CPU's reference: see
        `libra.kernels`. The same on every rank.
      measure: on GPUs, mark on the stream what passes take, so that metrics() has seconds; it then
        waits for the stream. On CPUs they are always there.

    Every rank of the pool makes one, uses the same plans in the same order and closes it. Opens
    nothing but NCCL where that is used: messages go over torch.distributed's gloo, between the same
    ranks. Any thread may use it, one at a time. Raises ConfigError for a group that `workers` does
    not divide, TransportError if a rank does not come within the deadline (over
    NCCL: half a minute at least).
    """

    @typed
    def __init__(self, group=None, *, workers: int | None = None,
                 device: torch.device | str | int | None = None, deadline: float = 300.0,
                 keep: int = 256, alone: bool = False, transport: str = "auto",
                 one_queue: bool | None = None, kernels: Kernels | None = None,
                 measure: bool = False):
        _check_at_least_1("workers", workers)
        _check_at_least_1("keep", keep)
        if not 1e-3 <= deadline <= LONGEST_DEADLINE:
            _core.refuse("Pool", "deadline", deadline,
                         f"from 0.001 to {LONGEST_DEADLINE:.0f} seconds")
        ranks = [_own_rank()] if alone else _ranks_of(group)
        workers = workers or len(ranks)
        if workers > 1 and group is None and not alone and not _in_a_job():
            raise _core.ConfigError(
                f"a pool of {workers} workers needs torch.distributed: dist.init_process_group "
                "comes first")
        if len(ranks) % workers:
            raise _core.ConfigError(
                f"pools of {workers} workers do not divide a group of {len(ranks)} ranks: P * CP "
                "must divide DP * CP; for this rank by itself, as in evaluation, there is "
                "libra.Pool(alone=True)")
        place = ranks.index(_own_rank()) if len(ranks) > 1 else 0
        first = place - place % workers
        self.ranks = ranks[first:first + workers]  #: global ranks, by worker
        self.worker = place - first  #: this rank's number in the pool
        self.group_size, self.group_rank = len(ranks), place  #: of the group that pools divide
        self.device = torch.device(device or _device_of(group))
        on_gpu = self.device.type == "cuda"
        if not on_gpu and self.device.type != "cpu":
            _core.refuse("Pool", "device", device, "a CPU or CUDA device")
        self._key = f"libra/pool/{'-'.join(map(str, self.ranks))}/{_number(self.ranks)}"
        self._group = self._meet(deadline) if workers > 1 else None
        self._port = None if self._group is None else TorchPort(
            self._group, dist.distributed_c10d._get_default_store(), self._key)
        self._deadline = float(deadline)
        self._gathering = None  # the latest work of the group that is not a message
        _check_transport(transport, on_gpu)
        runner = _runner_of(kernels, self.device)
        self._core = (self._device_worker(transport, one_queue, deadline, runner) if on_gpu else
                      self._host_worker(deadline, runner))
        # Agrees on plans: the pool's own, or one on the CPU beside it (pool_worker.h says why).
        self._witness = self._host_worker(deadline) if on_gpu else self._core
        self._measures = measure or not on_gpu
        self._core.measure(self._measures)
        self._kept = collections.deque(maxlen=keep)
        self._used = collections.Counter()  # sums over the plans since the last metrics()
        _open_pools.add(self)

    @property
    def workers(self):
        """P * CP."""
        return len(self.ranks)

    def _meet(self, deadline):
        """A gloo group of its own: torch's new_group wants every rank to have made equally many,
        and would keep it for good."""
        store = dist.PrefixStore(f"{self._key}/gloo", dist.distributed_c10d._get_default_store())
        try:
            group = dist.ProcessGroupGloo(store, self.worker, self.workers,
                                          timedelta(seconds=float(deadline)))
            group.barrier().wait()  # or one that closes its pool at once would break off a meeting
            return group
        except RuntimeError as error:
            raise _core.TransportError(
                f"worker {self.worker} did not reach ranks {self.ranks} of its pool within "
                f"{deadline} s: {_reason(error)}; does each of them make this pool?") from None

    def _host_worker(self, deadline, runner=None):
        return _core.host_worker(self._port, self.worker, self.workers, float(deadline), runner)

    def _device_worker(self, transport, one_queue, deadline, runner):
        if one_queue is None:
            one_queue = _connections() < DEFAULT_CONNECTIONS
        name, nccl_id, near = uuid.uuid4().hex, b"", [0]
        if self._group is not None:
            said = self._gather((name, transport, _host(), one_queue))
            name = said[0][0]
            one_queue = any(wish for *_, wish in said)
            nccl_id, near = self._reach([(wanted, host) for _, wanted, host, _ in said])
        index = self.device.index
        if index is None:
            index = torch.cuda.current_device() if torch.cuda.is_available() else 0
        self.device = torch.device("cuda", index)
        return _core.device_worker(name, self.worker, self.workers, index, one_queue,
                                   float(deadline), near, nccl_id, runner)

    def _reach(self, said):
        """(NCCL's id, workers reached by copy engines); said: (transport, host) by worker."""
        transports, hosts = zip(*said)
        if len(set(transports)) > 1:
            raise _core.ConfigError(f"the pool's transport is {', '.join(transports)} by worker: "
                                    "it must be the same on every rank")
        near = [w for w, host in enumerate(hosts) if host == hosts[self.worker]]
        if transports[0] != "nccl" and len(near) == self.workers:
            return b"", near
        if transports[0] == "peer":
            raise _core.ConfigError(
                f"the pool's ranks are on {len(set(hosts))} hosts, and transport peer is within "
                "one: leave it at auto")
        nccl_id = self._gather(_core.make_nccl_id() if self.worker == 0 else b"")[0]
        return nccl_id, [] if transports[0] == "nccl" else near

    def _gather(self, mine):
        """What each worker says, by worker. Raises TransportError if one does not."""
        said = torch.frombuffer(bytearray(pickle.dumps(mine)), dtype=torch.uint8)
        sizes = self._gather_tensors(torch.tensor([said.numel()], device="cpu"))
        longest = int(max(sizes))
        said = torch.cat([said, said.new_zeros(longest - said.numel())])
        return [pickle.loads(each[:size].numpy().tobytes())
                for each, size in zip(self._gather_tensors(said), sizes)]

    def _gather_tensors(self, mine):
        # Kept, since gloo's thread would want the interpreter's lock to free its tensors, and the
        # group may be waiting for that thread, with the lock, when it ends.
        gathered = [torch.empty_like(mine) for _ in self.ranks]
        port = self._port
        work = self._gathering = self._open_group().allgather([gathered], [mine])
        if self._group is None:  # closed meanwhile, by a thread that saw no gathering
            port.close_connections()
        cause = ""
        while not cause and not _ends(work):
            cause = port.first_cause()
        try:
            if not cause:
                work.wait()
                return gathered
        except RuntimeError as error:
            cause = port.first_cause() or _reason(error)
        raise _core.TransportError(
            f"worker {self.worker} did not hear of all workers what they hold: {cause}")

    def _open_group(self):
        if (group := self._group) is None:
            raise _core.ConfigError("the pool has been closed: make a new one")
        return group

    @typed
    def plan(self, options: _core.PlanOptions | _core.Planning,
             sequences: Iterable[_core.PackedSequence | Iterable[int]]) -> Plan:
        """The `Plan` of these packed sequences, one a replica of the pool; the same on every rank.

        Args:
          options: `PlanOptions`, or `Planning` for costs in seconds or a memory cap.
          sequences: of `PackedSequence`, or lists of sample lengths without padding.
        Raises ConfigError for options or sequences that break a rule.
        """
        sequences = [_sequence(*numbered) for numbered in enumerate(sequences)]
        if isinstance(options, _core.Planning):
            return self.adopt(options.plan(sequences))
        return self.adopt(_core.make_plan(options, sequences))

    @typed
    def plan_together(self, options: _core.PlanOptions, samples: Iterable[int], *,
                      tokens: int | None = None) -> Plan:
        """The `Plan` of what the replicas hold now, where no sampler tells every rank: a collective
        that gathers the lengths.

        Args:
          samples: sample lengths of this rank's packed sequence, all of it.
          tokens: of the sequence, padding included; their sum unless given.
        Raises TransportError if a rank does not come.
        """
        samples = _whole("plan_together", "samples", samples)
        mine = (tokens if tokens is not None else sum(samples), samples)
        try:
            gathered = [mine] if self.workers == 1 else self._gather(mine)
        except _core.TransportError as error:
            self.fail(error)
        return self.plan(options, [_core.PackedSequence(*of_rank)
                                   for of_rank in gathered[::options.cp]])

    @typed
    def adopt(self, core: _core.PoolPlan) -> Plan:
        """A `PoolPlan` that was made elsewhere (a `Planner`, `PoolPlan.from_bytes`) as a `Plan`.
        Raises ConfigError for one of another number of workers."""
        if core.workers != self.workers:
            raise _core.ConfigError(
                f"the plan is for {core.workers} workers and the pool has {self.workers} ranks: "
                "give one sequence a replica, replicas * cp = ranks; for this rank by itself, as "
                "in evaluation, there is libra.Pool(alone=True)")
        plan = Plan(core, self)
        self._kept.append(plan)
        return plan

    def metrics(self):
        """A plain dict over the passes since the last call, for W&B or TensorBoard. Its keys begin
        with "libra/": figures["libra/skew"].

        Means over the plans used: `skew` (slowest rank over the mean if nothing moved), `balance`
        (the same as planned), `tiles_moved`. Sums on this rank: `passes`, `bytes_sent`,
        `bytes_received`; if measured, `compute_seconds`, `pass_seconds` and `exposed_seconds` (in
        passes and not computing). On GPUs `graphs_built`, by this process for shapes of attention
        that it had not met: 0 once training is warm.
        """
        figures = self._core.take_figures(self._stream())
        if self._measures:
            figures["exposed_seconds"] = max(
                0.0, figures["pass_seconds"] - figures["compute_seconds"])
        else:
            del figures["pass_seconds"], figures["compute_seconds"]
        if self.device.type != "cuda":
            del figures["graphs_built"]
        used, self._used = self._used, collections.Counter()
        plans = used.pop("plans", 0)
        figures.update({name: total / plans for name, total in used.items()})
        return {f"libra/{name}": value for name, value in figures.items()}

    def close(self):
        """Ends the pool's threads and connections. At exit it is done for you. On GPUs it waits
        for passes in flight, up to the deadline: the other ranks need them."""
        try:
            end = time.monotonic() + self._deadline
            while self._core.is_busy() and time.monotonic() < end:
                time.sleep(1e-3)
        finally:
            self._let_go()

    def _let_go(self):
        self._core.close()
        self._witness.close()
        port, gathering = self._port, self._gathering
        if port is not None and gathering is not None and not gathering.is_completed():
            port.close_connections()  # of another thread, for which the group's end would wait
        self._group = self._port = port = None
        self._gathering = None  # after the group
        _open_pools.discard(self)

    def bind(self, plan):
        """What passes of the plan need, agreed on by all ranks at its first use."""
        if plan.bound is None:
            try:
                self._agree(plan.core)
                plan.bound = self._core.bind(plan.core, self._stream())
            except _core.PlanError as error:
                store = dist.distributed_c10d._get_default_store()
                found = differences(store, self._key, self.worker, self.workers, plan.core)
                raise _core.PlanError(f"{error}{found}") from None
            self._used.update(plans=1, **{name: getattr(plan.core, name) for name in
                                          ("skew", "balance", "tiles_moved")})
        return plan.bound

    def _agree(self, core):
        try:
            self._witness.agree(core)
        except _core.TransportError as error:
            self.fail(error)

    def forward(self, plan, q, k, v, scale):
        """(out, lse, saved) of this rank's rows. See libra.attention."""
        self._check("q, k and v", q, k, v)
        bound = self.bind(plan)
        q, k, v = map(rows, (q, k, v))
        out = q.new_empty(q.shape[0], q.shape[1], v.shape[2])
        lse = q.new_empty(q.shape[0], q.shape[1], dtype=lse_dtype(q.dtype))
        saved = q.new_empty(bound.saved_bytes, dtype=torch.uint8)
        try:
            self._core.forward(bound, view(q), view(k), view(v), view(out), view(lse), scale,
                               saved.data_ptr(), self._stream())
        except _core.ConfigError as error:
            advice = dtype_advice(plan.options.dtype, q, k, v)
            raise _core.ConfigError(f"{error}{advice}") from None
        return out, lse, saved

    def backward(self, plan, d_out, q, k, v, out, lse, saved, scale):
        """(dq, dk, dv)."""
        self._check("the gradient", d_out)
        bound = self.bind(plan)
        d_out, q, k, v = map(rows, (d_out, q, k, v))
        dq, dk, dv = (torch.empty_like(t, memory_format=torch.contiguous_format)
                      for t in (q, k, v))
        scratch = q.new_empty(bound.scratch_bytes, dtype=torch.uint8)
        self._core.backward(bound, view(q), view(k), view(v), view(out), view(lse),
                            view(d_out), view(dq), view(dk), view(dv), scale,
                            saved.data_ptr(), scratch.data_ptr(), self._stream())
        return dq, dk, dv

    def fail(self, error):
        """Tells the other ranks that this one cannot go on, and raises the error."""
        if self.workers > 1:
            for core in (self._core, self._witness):
                core.abort(str(error))
        raise error

    def _check(self, names, *tensors):
        for tensor in tensors:
            if tensor.dim() != 3:
                self.fail(_core.ConfigError(
                    f"{names} must be [tokens, heads, dim]: one has {tensor.dim()} dimensions"))
            if tensor.device.type != self.device.type:
                self.fail(_core.ConfigError(
                    f"{names} must be on {self.device.type}, where the pool's plans run: one is "
                    f"on {tensor.device.type}"))
            if tensor.dtype not in DTYPES:
                self.fail(_core.ConfigError(
                    f"{names} must be bf16, fp16, fp32 or fp64: one is {tensor.dtype}"))

    def _stream(self):
        if self.device.type == "cpu":
            return 0
        return torch.cuda.current_stream(self.device).cuda_stream

    def __repr__(self):
        return f"Pool(worker {self.worker} of {self.workers}, {self.device})"


@contextlib.contextmanager
def profile(pool, path):
    """Writes what this rank's passes did inside the block to `path`, for Perfetto."""
    def end():
        pool._core.record(False, pool._stream())
        file.write(pool._core.trace())

    with open(path, "w", encoding="utf-8") as file:
        pool._core.record(True, pool._stream())
        try:
            yield
        except BaseException:
            with contextlib.suppress(_core.Error):  # of a pool that has been closed meanwhile
                end()
            raise
        end()


def _ends(work):
    """Whether it does within a second, well or not."""
    with contextlib.suppress(RuntimeError):
        work.wait(timedelta(seconds=1))
    return work.is_completed()


def _reason(error):
    """What torch says, without the stack."""
    return " ".join(str(error).partition("Exception raised from")[0].split())


def _connections():
    """The GPU's hardware queues."""
    wanted = os.environ.get("CUDA_DEVICE_MAX_CONNECTIONS", "")
    return int(wanted) if wanted.isdecimal() else DEFAULT_CONNECTIONS


def _number(ranks):
    _made[tuple(ranks)] += 1
    return _made[tuple(ranks)]


def _in_a_job():
    return dist.is_available() and dist.is_initialized()


def _own_rank():
    return dist.get_rank() if _in_a_job() else 0


def _host():
    return socket.gethostname()


def _runner_of(kernels, device):
    if kernels is None:
        return None
    devices = getattr(kernels, "devices", (device.type,))
    if device.type not in devices:
        raise _core.ConfigError(f"{type(kernels).__name__} computes on {' and '.join(devices)}, "
                                f"and the pool's device is {device.type}: leave out kernels")
    return Runner(kernels)


def _check_transport(name, on_gpu):
    if name not in ("auto", "peer", "nccl"):
        raise _core.ConfigError(f"no transport '{name}': auto, peer and nccl are there")
    if name != "auto" and not on_gpu:
        raise _core.ConfigError(
            f"transport {name} is between GPUs, and the pool's device is the CPU: leave it out")


def _ranks_of(group):
    if group is None and not _in_a_job():
        return [0]
    if hasattr(group, "mesh"):
        return group.mesh.flatten().tolist()
    if group is not None and not isinstance(group, dist.ProcessGroup):
        _core.refuse("Pool", "group", group, "a ProcessGroup or DeviceMesh that this rank is in")
    return dist.get_process_group_ranks(group)


def _device_of(group):
    if hasattr(group, "device_type"):
        return group.device_type
    if _in_a_job() and "nccl" in dist.get_backend(group):
        return "cuda"
    return "cpu"


def _check_at_least_1(name, value):
    if value is not None and value < 1:
        _core.refuse("Pool", name, value, "at least 1")


def _sequence(number, sequence):
    if isinstance(sequence, _core.PackedSequence):
        return sequence
    samples = _whole("Pool.plan", f"sequences[{number}]", sequence)
    return _core.PackedSequence(sum(samples), samples)


def _whole(where, name, values):
    try:
        return [operator.index(value) for value in values]
    except TypeError:
        return _core.refuse(where, name, values,
                            "the lengths of a sequence's samples, a sequence of ints")
