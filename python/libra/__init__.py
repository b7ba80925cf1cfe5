"""Libra: balances attention work in long-context LLM training.

    pool = libra.Pool(group, workers=P * CP)               # once
    plan = pool.plan(options, sequences)                    # one a microbatch; see Planner
    out = libra.attention(q, k, v, plan=plan)               # in every layer

The C++ core decides, exchanges and computes; this package brings it to torch. Nothing of torch is
imported before it is used, so `libra.report` and planning work without it.
"""

from importlib import import_module as _import_module

_HOMES = {
    "ConfigError": "_core",
    "Error": "_core",
    "InputError": "_core",
    "InternalError": "_core",
    "PackedSequence": "_core",
    "PlanError": "_core",
    "PlanOptions": "_core",
    "PoolPlan": "_core",
    "TransportError": "_core",
    "__version__": "_core",
    "assign_pools": "_core",
    "check_window": "_core",
    "make_plan": "_core",
    "parse_size": "_core",
    "sequence_cost": "_core",
    "read_lengths": "_lengths",
    "attention": "_attention",
    "Plan": "_plans",
    "Pool": "_pool",
    "profile": "_pool",
    "Collator": "batches",
    "PackedBatch": "sampling",
    "PackedDataset": "batches",
    "Planner": "sampling",
    "PooledBatchSampler": "sampling",
}

_MODULES = ["integrations", "kernels"]

__all__ = [name for name in _HOMES if not name.startswith("_")]


def __getattr__(name):
    home = _HOMES.get(name)
    if home is None and name not in _MODULES:
        raise AttributeError(f"module 'libra' has no attribute {name!r}")
    try:
        if home is None:
            return _import_module(f"libra.{name}")
        value = getattr(_import_module(f"libra.{home}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "torch":
            raise
        raise ImportError(
            f"libra.{name} needs PyTorch 2.6 or later, which is not installed: pip install torch"
        ) from None
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_HOMES, *_MODULES})
