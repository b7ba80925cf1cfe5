"""The messages of a pool over torch.distributed: what libra._core's MessagePort calls."""

import threading
from datetime import timedelta

import torch

_BREAKING_TAG = 1 << 27  # exchanges have tags below it
_LOOKING_TAG = _BREAKING_TAG + 1
_STORE_SECONDS = 2.0  # it answers in milliseconds, or the rank that holds it does not run


class TorchPort:
    """isend and irecv of byte views in one process group, whose failure its members share.

    gloo has no way to tell the others that a rank has failed. So the reason goes into the store,
    and a wait that times out at once closes this rank's connections, which ends the others' waits.
    """

    def __init__(self, group, store, key):
        self._group = group
        self._note = _Note(store, key)
        self._cause = ""

    def send(self, peer, tag, view):
        return self._group.send([torch.frombuffer(view, dtype=torch.uint8)], peer, tag)

    def receive(self, peer, tag, view):
        return self._group.recv([torch.frombuffer(view, dtype=torch.uint8)], peer, tag)

    def fail(self, cause):
        self._cause = cause
        try:
            self._note.write(cause)
        finally:
            self.close_connections()

    def first_cause(self):
        return self._note.read() or self._cause

    def lost(self, peer):
        """What became of the connection to this peer; "" if it is there. gloo refuses what begins
        on one that is gone, but ends no wait for a message that was cut in its middle. What begins
        stays with the peer for good: a few bytes, so this is for long waits."""
        try:
            self._group.recv([torch.empty(1, dtype=torch.uint8, device="cpu")], peer, _LOOKING_TAG)
            return ""
        except RuntimeError as error:
            return str(error)

    def close_connections(self):
        """This rank's to all others: whatever waits in the group ends. A wait that times out does
        it, but with a peer that is gone gloo does not begin to wait; so each is tried."""
        for peer in set(range(self._group.size())) - {self._group.rank()}:
            try:
                nothing = torch.empty(1, dtype=torch.uint8, device="cpu")
                self._group.recv([nothing], peer, _BREAKING_TAG).wait(timedelta(milliseconds=1))
            except RuntimeError:
                pass


class _Note:
    """A text in the store that its first writer decides. Any thread.

    A store waits without end for the rank that holds it if that one is stopped, and for another
    thread of this process that waits for it. So it is asked on a thread that may be left behind;
    while that has no answer, nothing more is asked.
    """

    def __init__(self, store, key):
        self._store = store  # None once it is gone, with the rank that held it
        self._key = key
        self._text = None
        self._turn = threading.Lock()
        self._asking = None

    def write(self, text):
        self._text = text  # if another question is being asked, its thread writes it
        self._ask(lambda store, key: None)

    def read(self):
        return self._ask(
            lambda store, key: store.get(key).decode() if store.check([key]) else "")

    def _ask(self, question):
        """None if there is no answer."""
        with self._turn:
            if self._store is None or (self._asking is not None and self._asking.is_alive()):
                return None
            answers = []

            def ask():
                try:
                    answers.append(question(self._store, self._key))
                    if self._text is not None:
                        self._store.compare_set(self._key, "", self._text)
                except RuntimeError:
                    self._store = None

            self._asking = threading.Thread(target=ask, daemon=True)
            self._asking.start()
            self._asking.join(_STORE_SECONDS)
            return answers[0] if answers else None
