"""Random faults among the ranks of a pool (faults.py), and bytes that are no plan.

LIBRA_FAULT_SCENARIOS=100 runs more of them; the seed is printed.
"""

import os
import random

import pytest

import faults
import libra
from pools import Case, skewed

SCENARIOS = int(os.environ.get("LIBRA_FAULT_SCENARIOS", "3"))
SEED = random.SystemRandom().randrange(1 << 32)


@pytest.mark.parametrize("place", ["cpu", "peer", "nccl"])
def test_random_faults_end_in_errors_and_exits(place, capsys):
    if reason := faults.missing(place):
        pytest.skip(reason)
    figures = faults.run_scenarios(SCENARIOS, SEED, place)
    with capsys.disabled():
        print(f"\n{figures}")


def test_a_stopped_rank_that_holds_the_jobs_store_keeps_nobody_waiting():
    def stops_rank_0(seed):
        fault = faults.fault_of(seed, "cpu")
        return (fault.size, fault.odd, fault.kind) == (2, 0, "stop")

    faults.run_scenario(next(seed for seed in range(1000) if stops_rank_0(seed)))


@pytest.mark.parametrize("data", [b"", b"LIBRPLAN", b"LIBRPLAN" + bytes(8 * 40)])
def test_bytes_that_are_no_plan_are_an_error(data):
    with pytest.raises((libra.PlanError, libra.ConfigError)):
        libra.PoolPlan.from_bytes(data)


def test_bytes_of_a_plan_that_are_changed_are_an_error_or_the_same_plan():
    rng = random.Random(SEED)
    case = Case(3, samples=skewed(3))
    plan = libra.make_plan(case.plan_options(), case.sequences())
    good = plan.to_bytes()
    assert libra.PoolPlan.from_bytes(good) == plan
    for _ in range(300):
        changed = bytearray(good)
        for _ in range(rng.randint(1, 3)):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        try:
            assert libra.PoolPlan.from_bytes(bytes(changed)) == plan
        except libra.Error:
            pass
