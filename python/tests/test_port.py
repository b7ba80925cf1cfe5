"""How a pool's messages over torch.distributed fail: libra/_port.py, and the waits for them."""

import os
import re
import signal
import threading
import time
from concurrent import futures
from datetime import timedelta

import pytest
import torch.distributed as dist

from libra import _core, make_plan, TransportError
from libra._port import TorchPort, _Note
from pools import Case, skewed
from worlds import World

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


def die_in_a_message():
    rank, store = dist.get_rank(), dist.distributed_c10d._get_default_store()
    group = dist.ProcessGroupGloo(dist.PrefixStore("die", store), rank, 2, timedelta(seconds=LONG))
    port = TorchPort(group, store, "die/cause")
    assert port.lost(1 - rank) == ""
    message = bytearray(1 << 28)
    dist.barrier()
    if rank == 1:
        threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGKILL)).start()
        port.send(0, 1, message).wait(timedelta(seconds=LONG))
        time.sleep(LONG)
    receiving = port.receive(1, 1, message)  # may or may not come
    begin = time.monotonic()
    while not port.lost(1):
        assert time.monotonic() < begin + LONG / 2
        time.sleep(0.1)
    port.close_connections()
    del receiving


def test_a_peer_that_dies_in_a_message_is_lost():
    world = World(2)
    (_, raised), _ = world.outcomes(die_in_a_message)
    world.close()
    assert raised == ""


# --- waits ---------------------------------------------------------------------------------------

class Work:
    def __init__(self, wait):
        self.wait = wait


class OtherRank:
    """A port to a rank that agrees with everything, so many seconds later."""

    def __init__(self, seconds, cause=""):
        self.seconds, self.cause = seconds, cause
        self.asked = 0
        self.failed = threading.Event()
        self.said, self.told = [], []  # to it, and of a failure

    def send(self, peer, tag, view):
        self.said.append(bytes(view))
        return Work(lambda timeout: None)

    def receive(self, peer, tag, view):
        def wait(timeout):
            if self.failed.wait(self.seconds):
                raise RuntimeError("connection closed")
            view[:] = self.said[-1]
        return Work(wait)

    def fail(self, cause):
        self.told.append(cause)
        self.failed.set()

    def first_cause(self):
        self.asked += 1
        return self.cause

    def lost(self, peer):
        return ""


def worker_beside(port):
    return _core.host_worker(port, 0, 2, LONG), make_plan(
        Case(2).plan_options(), Case(2, samples=skewed(2)).sequences())


def test_short_waits_ask_nobody_for_a_cause():
    port = OtherRank(0.05, "not looked for")
    worker, plan = worker_beside(port)
    begin = time.monotonic()
    while time.monotonic() < begin + 2.5:
        worker.agree(plan)
    worker.close()
    assert port.asked == 0


def test_a_long_wait_asks_for_a_cause_once_a_second_at_most():
    port = OtherRank(3.5)
    worker, plan = worker_beside(port)
    begin = time.monotonic()
    worker.agree(plan)
    assert 1 <= port.asked <= time.monotonic() - begin
    worker.close()


def test_a_long_wait_ends_with_a_cause_that_another_has_given():
    port = OtherRank(LONG, "worker 7 aborted: no more tensors")
    worker, plan = worker_beside(port)
    begin = time.monotonic()
    with pytest.raises(TransportError, match=(
            "worker 0 gave up .*: worker 7 aborted: no more tensors$")):
        worker.agree(plan)
    assert time.monotonic() - begin < LONG / 2
    worker.close()


def test_a_worker_may_be_closed_while_it_asks_for_a_cause():
    port = OtherRank(LONG)
    asks, answers = threading.Event(), threading.Event()

    def first_cause():
        asks.set()
        answers.wait(LONG)
        return ""

    port.first_cause = first_cause
    worker, plan = worker_beside(port)
    with futures.ThreadPoolExecutor() as threads:
        pass_ = threads.submit(worker.agree, plan)
        assert asks.wait(LONG)
        closing = threads.submit(worker.close)
        assert port.failed.wait(LONG)
        answers.set()
        closing.result(LONG / 2)
        with pytest.raises(TransportError, match="closed in the middle of a pass"):
            pass_.result(LONG / 2)


def test_a_wait_that_nothing_ends_is_left_behind_when_the_worker_closes():
    port = OtherRank(LONG, "worker 7 aborted: no more tensors")
    ends = threading.Event()  # not with the failure
    port.receive = lambda *_: Work(lambda timeout: ends.wait(LONG))
    worker, plan = worker_beside(port)
    with pytest.raises(TransportError, match="worker 7 aborted"):
        worker.agree(plan)
    begin = time.monotonic()
    worker.close()
    assert time.monotonic() - begin < LONG / 2
    with futures.ThreadPoolExecutor() as threads:
        awaiting = threads.submit(_core.await_left_behind)
        with pytest.raises(futures.TimeoutError):
            awaiting.result(0.2)
        ends.set()
        awaiting.result(LONG / 2)


def test_a_long_wait_ends_when_the_connection_is_gone():
    port = OtherRank(LONG)
    port.lost = lambda peer: f"connection to {peer} closed"
    worker, plan = worker_beside(port)
    begin = time.monotonic()
    with pytest.raises(TransportError, match="worker 0 lost worker 1 in .*connection to 1 closed$"):
        worker.agree(plan)
    assert time.monotonic() - begin < LONG / 2
    worker.close()


def test_a_peer_that_closes_once_all_has_come_is_not_lost():
    port = OtherRank(2.3)
    port.lost = lambda peer: port.failed.wait(0.5) or "closed"
    worker, plan = worker_beside(port)
    worker.agree(plan)
    worker.close()


def test_others_are_told_which_rank_was_lost_where_a_message_cannot_begin():
    def send(*_):
        raise RuntimeError("connection closed")

    port = OtherRank(LONG)
    port.send = send
    worker, plan = worker_beside(port)
    cause = "worker 0 lost worker 1 in step 0, agreement on the plan.*: connection closed$"
    with pytest.raises(TransportError, match=f"worker 0 gave up .*: {cause}"):
        worker.agree(plan)
    assert len(port.told) == 1 and re.match(cause, port.told[0])
    worker.close()


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
