"""A trainer that is killed at random moments and goes on from its last checkpoint trains on exactly
what an undisturbed one does: every document once an epoch."""

import collections
import json
import multiprocessing
import os
import random
import signal
import time

import pytest

import libra
from libra import PooledBatchSampler

SEED = random.SystemRandom().randrange(1 << 32)
KILLS = 25
EPOCHS = 3
DP = 4
SIZES = dict(seq_len=128, gbs=8, dp=DP, pool_size=2)
LENGTHS = [random.Random(5).randrange(60) for _ in range(400)]


def samplers(dp=DP, **changes):
    return [PooledBatchSampler(LENGTHS, **{**SIZES, "dp": dp, "dp_rank": rank, **changes})
            for rank in range(dp)]


def line_of(epoch, batches):
    samples = [sample for batch in batches for sample in batch.samples]
    return json.dumps([epoch, samples]).encode() + b"\n"


def save(folder, state, offset):
    """All or nothing, as checkpoints should be."""
    with open(f"{folder}/checkpoint.new", "w") as file:
        json.dump(dict(state=state, offset=offset), file)
    os.replace(f"{folder}/checkpoint.new", f"{folder}/checkpoint")


def train(folder, last_window, pause):
    """Logs what it trains on; what comes after the last checkpoint of a killed run is undone."""
    made = samplers(last_window=last_window)
    state, offset = None, 0
    if os.path.exists(f"{folder}/checkpoint"):
        with open(f"{folder}/checkpoint") as file:
            state, offset = json.load(file).values()
        for each in made:
            each.load_state_dict(state)
    with open(f"{folder}/log", "ab") as log:
        log.truncate(offset)
        log.seek(offset)
        for epoch in range(state["epoch"] if state else 0, EPOCHS):
            for each in made:
                each.set_epoch(epoch)
            for number, batches in enumerate(zip(*made, strict=True)):
                log.write(line_of(epoch, batches))
                log.flush()
                if number % 3 == 0:
                    save(folder, made[0].state_dict(), log.tell())
                time.sleep(pause)
    open(f"{folder}/done", "w").close()


def killed_until_done(folder, last_window, rng):
    """How often it was killed before it came to the end."""
    context = multiprocessing.get_context("fork")
    kills = 0
    while not os.path.exists(f"{folder}/done"):
        pause = 0.002 if kills < KILLS else 0
        process = context.Process(target=train, args=(folder, last_window, pause))
        process.start()
        if kills < KILLS:
            process.join(rng.uniform(0.01, 0.08))
        else:
            process.join(60)
        if process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        process.join()
    return kills


@pytest.mark.parametrize("last_window", ["carry", "drop"])
def test_a_run_that_is_killed_again_and_again_trains_on_what_an_undisturbed_one_does(
        tmp_path, last_window):
    rng = random.Random(SEED)
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    undisturbed.mkdir()
    killed.mkdir()
    train(undisturbed, last_window, 0)
    assert killed_until_done(killed, last_window, rng) > 3, f"seed {SEED}"
    log = (undisturbed / "log").read_bytes()
    assert (killed / "log").read_bytes() == log, f"seed {SEED}"
    seen = collections.defaultdict(collections.Counter)
    for line in log.splitlines():
        epoch, samples = json.loads(line)
        seen[epoch].update(document for document, _, _ in samples)
    if last_window == "drop":  # what does not fill a step is left out, and nothing comes twice
        assert all(max(seen[epoch].values()) == 1 for epoch in range(EPOCHS))
    else:  # an epoch's last step is filled from the next one
        total = sum(seen.values(), collections.Counter())
        assert {total[document] for document in range(len(LENGTHS))} <= {EPOCHS, EPOCHS + 1}


def taken(made, count):
    iterators = [iter(each) for each in made]
    return [next(each) for _ in range(count) for each in iterators]


def samples_of(batches):
    return collections.Counter(sample for batch in batches for sample in batch.samples)


def test_another_dp_at_a_random_moment_is_exact_or_refused():
    rng = random.Random(SEED)
    whole = samples_of(batch for each in samplers() for batch in each)
    length = len(samplers()[0])
    exact = refused = 0
    for _ in range(40):
        count, dp = rng.randrange(1, length), rng.choice([2, 8])
        before = samplers()
        trained = taken(before, count)
        after = samplers(dp=dp)
        try:
            for each in after:
                each.load_state_dict(before[0].state_dict())
        except libra.ConfigError as error:
            assert "middle of a step" in str(error) and count % 2 != 0, f"seed {SEED}"
            refused += 1
            continue
        rest = [batch for each in after for batch in each]
        assert samples_of(trained) + samples_of(rest) == whole, f"seed {SEED}"
        exact += 1
    assert exact and refused, f"seed {SEED}"
