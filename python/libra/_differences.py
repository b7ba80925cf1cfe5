"""In what the plans of a pool differ, when they do: told over the store, after the failure."""

import collections
import hashlib
import json
import re
from datetime import timedelta

from libra import _core

_PATIENCE = timedelta(seconds=5)


def differences(store, key, worker, workers, core):
    """A clause for the end of an error; "" if a worker does not tell."""
    try:
        store.set(f"{key}/plan/{worker}", json.dumps(facts_of(core)))
        names = [f"{key}/plan/{w}" for w in range(workers)]
        store.wait(names, _PATIENCE)
        return "; " + ", and ".join(contradictions([json.loads(store.get(n)) for n in names]))
    except RuntimeError:
        return ""


def facts_of(core):
    """What a plan was made from, in words that can be compared."""
    options = dict(re.findall(r"(\w+)=([^,)]+)", repr(core.options)))
    options["explicit_runs"] = _digest(core.options.explicit_runs)
    lengths = [(sequence.tokens, sequence.sample_tokens) for sequence in core.sequences]
    return dict(version=_core.__version__, options=options, lengths=_digest(lengths))


def _digest(value):
    return hashlib.blake2b(repr(value).encode(), digest_size=16).hexdigest()


def contradictions(facts):
    """Each fact that is not the same on all workers: facts by worker."""
    found = []
    if _differ(each["version"] for each in facts):
        found.append("the version is " + _by_value(each["version"] for each in facts))
    lengths_differ = _differ(each["lengths"] for each in facts)
    if lengths_differ:
        found.append("the lengths of samples differ")
    for name in facts[0]["options"]:
        follows = name == "max_tile_pairs" and lengths_differ
        values = [each["options"].get(name, "unknown") for each in facts]
        if _differ(values) and not follows:
            found.append(f"the option {name} is " + _by_value(values))
    return found or ["what is balanced differs: device_profile, memory_cap and cluster must be the "
                     "same too"]


def _differ(values):
    return len(set(values)) > 1


def _by_value(values):
    workers = collections.defaultdict(list)
    for worker, value in enumerate(values):
        workers[value].append(str(worker))
    return ", ".join(f"{value} on worker {', '.join(those[:8])}{' ...' * (len(those) > 8)}"
                     for value, those in workers.items())
