"""Plans as training code holds them: a number that travels, and what it stands for."""

import itertools
import weakref

from libra import _core

_ids = itertools.count(1)
_plans = weakref.WeakValueDictionary()


class Plan:
    """A pool's plan for one microbatch, from `Pool.plan` or a `Planner`. Immutable.

    It serves every layer, forward, recompute and backward. What travels through a model is
    `plan.id`, an int that is never used twice in a process; it is good for as long as the object is
    held, here or by the pool, which keeps the latest. `plan.core` is the `PoolPlan`.
    """

    def __init__(self, core, pool):
        self.core = core
        self.pool = pool
        self.id = next(_ids)
        self.bound = None  # what the pool has agreed on, from the first use on
        _plans[self.id] = self

    def __int__(self):
        return self.id

    __index__ = __int__

    @property
    def options(self):
        """The `PlanOptions`."""
        return self.core.options

    @property
    def rows(self):
        """Tokens that this rank holds: the first dimension of its q, k, v and out."""
        return self.core.rows(self.pool.worker)

    @property
    def runs(self):
        """Tokens [begin, end) of its packed sequence that this rank holds, in local order."""
        return self.core.runs(self.pool.worker)

    def token_index(self):
        """int64 [rows]: the token of the packed sequence in each local row."""
        import torch

        return torch.cat([torch.arange(begin, end) for begin, end in self.runs] or
                         [torch.arange(0)])

    def __repr__(self):
        return f"Plan(id={self.id}, {self.core!r})"


def find_plan(plan_id):
    """The plan of this id. Raises PlanError if nobody holds it any more."""
    plan = _plans.get(plan_id)
    if plan is None:
        raise _core.PlanError(
            f"there is no plan {plan_id}: it was let go (Pool(keep=...) says how many are kept), "
            "or made in another process")
    return plan
