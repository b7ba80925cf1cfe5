"""The messages of a pool over torch.distributed: what libra._core's MessagePort calls."""

import threading
from datetime import timedelta

import torch

_BREAKING_TAG = 1 << 27  # exchanges have tags below it
_STORE_SECONDS = 2.0  # it answers in milliseconds, or the rank that holds it does not run


class TorchPort:
    """isend and irecv of byte views in one process group, whose failure its members share.

    gloo has no way to tell the others that a rank has failed. So the reason goes into the store,
    and a wait that times out at once closes this rank's connections, which ends the others' waits.
    """

    def __init__(self, group, store, key):
        self._group = group
        self._store = store
        self._key = key
        self._cause = ""

    def send(self, peer, tag, view):
        return self._group.send([torch.frombuffer(view, dtype=torch.uint8)], peer, tag)

    def receive(self, peer, tag, view):
        return self._group.recv([torch.frombuffer(view, dtype=torch.uint8)], peer, tag)

    def fail(self, cause):
        self._cause = cause
        try:
            self._ask_store(lambda store: store.compare_set(self._key, "", cause))
        finally:
            self._close_connections()

    def first_cause(self):
        def shared(store):
            return store.get(self._key).decode() if store.check([self._key]) else ""

        return self._ask_store(shared) or self._cause

    def _ask_store(self, question):
        """The answer; None if the store went with the rank that held it, or that rank is stopped:
        the store itself would wait for it without end. Then it is asked nothing more."""
        if self._store is None:
            return None
        answers = []

        def ask(store=self._store):
            try:
                answers.append(question(store))
            except RuntimeError:
                answers.append(None)

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        thread.join(_STORE_SECONDS)
        if not answers:
            self._store = None
        return answers[0] if answers else None

    def _close_connections(self):
        peer = (self._group.rank() + 1) % self._group.size()
        try:
            nothing = torch.empty(1, dtype=torch.uint8)
            self._group.recv([nothing], peer, _BREAKING_TAG).wait(timedelta(milliseconds=1))
        except RuntimeError:
            pass
