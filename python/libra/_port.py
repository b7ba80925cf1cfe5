"""The messages of a pool over torch.distributed: what libra._core's MessagePort calls."""

from datetime import timedelta

import torch

_BREAKING_TAG = 1 << 27  # exchanges have tags below it


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
            self._store.compare_set(self._key, "", cause)
        finally:
            self._close_connections()

    def first_cause(self):
        try:
            if self._store.check([self._key]):
                return self._store.get(self._key).decode()
        except RuntimeError:  # the store went with the rank that held it
            pass
        return self._cause

    def _close_connections(self):
        peer = (self._group.rank() + 1) % self._group.size()
        try:
            nothing = torch.empty(1, dtype=torch.uint8)
            self._group.recv([nothing], peer, _BREAKING_TAG).wait(timedelta(milliseconds=1))
        except RuntimeError:
            pass
