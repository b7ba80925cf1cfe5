"""Compares the losses of runs of examples/train_qwen3.py, METHOD:SEED.json each in a folder: how
far other methods are from `none` of the same seed, beside how far seeds of `none` are from each
other.

    python benchmarks/gpu/loss_curves.py build/gpu/curves

Fails if a method is further from `none` than two seeds of `none` are from each other, in the mean
over the steps.
"""

import itertools
import json
import pathlib
import sys


def losses(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line)["loss"] for line in file]


def distance(one, two):
    """Mean and largest absolute difference over the steps."""
    differences = [abs(a - b) for a, b in zip(one, two)]
    return sum(differences) / len(differences), max(differences)


def main(folder):
    runs = {path.stem: losses(path) for path in sorted(pathlib.Path(folder).glob("*:*.json"))}
    seeds = [name for name in runs if name.startswith("none:")]
    bases = {"none:" + name.split(":")[1] for name in runs}
    if len(seeds) < 2 or not bases <= set(seeds) or len(set(map(len, runs.values()))) > 1:
        sys.exit(f"{folder} holds {', '.join(runs) or 'no runs'}: there must be two seeds of none "
                 "at least, as none:0.json, one for every other run's seed, and all must be as "
                 "long")
    noise = min(distance(runs[a], runs[b])[0] for a, b in itertools.combinations(seeds, 2))
    print(f"{len(next(iter(runs.values())))} steps; two seeds of none: mean {noise:.4f} at least")
    failed = False
    for name in runs.keys() - set(seeds):
        run, base = runs[name], runs["none:" + name.split(":")[1]]
        mean, largest = distance(run, base)
        failed |= mean > noise
        print(f"{name}: from none by {mean:.5f} in the mean, {largest:.5f} at most; "
              f"loss {run[0]:.4f} to {run[-1]:.4f}")
    return failed


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
