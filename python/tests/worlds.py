"""Processes that are the ranks of one torch.distributed job, for tests.

    world = World(4)                         # backend, environment variables, time limit
    results = world.run(function, *args)     # function(*args) on every rank, by rank
    errors = world.errors(function, *args)   # what each rank raised, "" if nothing
    world.close()

Functions are module-level ones of a test file. The processes come from a server that has imported
torch once.
"""

import multiprocessing
import os
import traceback

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["torch", "torch.distributed", "libra._attention"])

LIMIT_SECONDS = 120  # a rank that says nothing for so long hangs


class World:
    def __init__(self, size, backend="gloo", environment=None, limit=LIMIT_SECONDS):
        self.size, self._limit = size, limit
        self._ranks = []
        for rank in range(size):
            here, there = _context.Pipe()
            process = _context.Process(
                target=_serve, args=(there, rank, size, backend, environment or {}),
                daemon=True)
            process.start()
            there.close()
            self._ranks.append((process, here))
        port = self._ranks[0][1].recv()  # which rank 0 was given, so that it is free
        for _, pipe in self._ranks[1:]:
            pipe.send(port)
        self.run(_ready)

    def outcomes(self, function, *args):
        """(result, error) by rank; the error of a process that died is "died"."""
        for _, pipe in self._ranks:
            pipe.send((function, args))
        return [self._answer(rank) for rank in range(self.size)]

    def run(self, function, *args):
        outcomes = self.outcomes(function, *args)
        failures = [f"rank {rank}:\n{error}" for rank, (_, error) in enumerate(outcomes) if error]
        assert not failures, "\n".join(failures)
        return [result for result, _ in outcomes]

    def errors(self, function, *args):
        return [error for _, error in self.outcomes(function, *args)]

    def close(self):
        for process, pipe in self._ranks:
            pipe.close()
        for process, _ in self._ranks:
            process.join(10)
            if process.is_alive():
                process.kill()

    def _answer(self, rank):
        process, pipe = self._ranks[rank]
        if not pipe.poll(self._limit):
            process.kill()
            return None, f"said nothing for {self._limit} s"
        try:
            return pipe.recv()
        except (EOFError, ConnectionResetError):
            return None, "died"


def _ready():
    return os.getpid()


def _store(pipe, rank):
    from torch.distributed import TCPStore

    if rank > 0:
        return TCPStore("127.0.0.1", pipe.recv(), is_master=False)
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    pipe.send(store.port)
    return store


def _serve(pipe, rank, size, backend, environment):
    import torch
    import torch.distributed as dist

    os.environ.update(environment)  # before CUDA and NCCL read theirs
    torch.set_num_threads(1)
    dist.init_process_group(backend, store=_store(pipe, rank), rank=rank, world_size=size)
    while True:
        try:
            function, args = pipe.recv()
        except (EOFError, ConnectionResetError):
            return
        try:
            pipe.send((function(*args), ""))
        except Exception:
            pipe.send((None, traceback.format_exc()))
