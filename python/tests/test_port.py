"""How a pool's messages over torch.distributed fail: libra/_port.py."""

import threading
import time
from datetime import timedelta

import pytest
import torch.distributed as dist

from libra._port import TorchPort, _Note

LONG = 30.0  # seconds: a deadline that nobody should come to


# --- connections ---------------------------------------------------------------------------------

def fail_one_after_the_other():
    """Rank 0 waits for rank 1, which fails, and rank 2 for rank 0. (cause, seconds) on each."""
    rank, store = dist.get_rank(), dist.distributed_c10d._get_default_store()
    group = dist.ProcessGroupGloo(dist.PrefixStore("one after the other", store), rank, 3,
                                  timedelta(seconds=LONG))
    port = TorchPort(group, store, "one after the other/cause")
    begin = time.monotonic()
    if rank != 1:
        with pytest.raises(RuntimeError):
            port.receive(1 if rank == 0 else 0, 1, bytearray(1)).wait(timedelta(seconds=LONG))
    port.fail(f"of rank {rank}")
    seconds = time.monotonic() - begin
    dist.barrier()  # a group that ends closes its connections, too
    return port.first_cause(), seconds


def test_a_rank_that_lost_another_closes_its_connections_to_the_rest(worlds):
    for cause, seconds in worlds(3).run(fail_one_after_the_other):
        assert cause == "of rank 1"
        assert seconds < LONG / 2


# --- the store -----------------------------------------------------------------------------------

class Store:
    def __init__(self):
        self.asked = 0
        self.goes_on = threading.Event()

    def check(self, keys):
        self.asked += 1
        assert self.goes_on.wait(LONG)
        return False


def test_a_store_that_stands_still_keeps_one_question_waiting():
    store = Store()
    note = _Note(store, "key")
    begin = time.monotonic()
    assert [note.read() for _ in range(100)] == [None] * 100
    assert store.asked == 1
    assert time.monotonic() - begin < LONG / 2
    store.goes_on.set()
    while (answer := note.read()) is None:
        time.sleep(0.01)
    assert answer == "" and store.asked == 2


def test_a_store_that_is_gone_is_asked_once():
    class Gone(Store):
        def check(self, keys):
            self.asked += 1
            raise RuntimeError("connection reset by peer")

    store = Gone()
    note = _Note(store, "key")
    assert [note.read(), note.write("a cause"), note.read()] == [None] * 3
    assert store.asked == 1
