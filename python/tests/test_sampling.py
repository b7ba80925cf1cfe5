"""Microbatches out of lengths: equal steps on all ranks, every document once an epoch, resumed
anywhere."""

import collections
import itertools
import json
import os
import signal
import time

import numpy as np
import pytest
import torch.distributed as dist

import libra
from libra import Planner, PooledBatchSampler
from samplers import LENGTHS, RANDOM, SIZES, batches_of, origins, sampler, take

# --- epochs --------------------------------------------------------------------------------------

@pytest.mark.parametrize("packing", ["first-fit", "best-fit-decreasing", "concat"])
def test_every_document_comes_once_an_epoch_and_steps_are_equal(packing):
    for epoch in (0, 1):
        by_rank = [batches_of(epoch, rank, packing=packing, last_window="drop")
                   for rank in range(4)]
        assert len({len(batches) for batches in by_rank}) == 1
        tokens = collections.Counter()
        for batch in itertools.chain(*by_rank):
            assert sum(n for _, _, n in batch.samples) <= 128
            for document, first, n in batch.samples:
                tokens[document] += n
        dropped = sum(LENGTHS) - sum(tokens.values())
        assert 0 <= dropped < 8 * 128
        for document, n in tokens.items():
            assert n == LENGTHS[document] or (packing == "concat" and n < LENGTHS[document])


def test_what_is_carried_over_is_not_lost():
    made = [sampler(rank) for rank in range(4)]
    seen = collections.Counter()
    for epoch in range(3):
        for each in made:
            each.set_epoch(epoch)
            seen += collections.Counter(d for batch in each for d in batch)
    # The last step of the third epoch is filled from the fourth.
    assert {3, 4} == set(seen[d] for d in range(len(LENGTHS)))


@pytest.mark.parametrize("changes", [
    dict(last_window="carry"), dict(last_window="drop"), dict(packing="best-fit-decreasing"),
    dict(packing="concat"), dict(packing="wlb", equal_cost_tokens=20)], ids=str)
def test_the_length_is_what_is_yielded(changes):
    made = sampler(**changes)
    for epoch in (0, 1, 3, 2, 0, 4):
        made.set_epoch(epoch)
        assert len(made) == len(list(made)) > 0


def test_an_epoch_is_repeated_until_another_is_set():
    made = sampler()
    first = list(made)
    assert list(made) == first
    made.set_epoch(1)
    assert list(made) != first
    made.set_epoch(0)
    assert list(made) == first


def test_pools_are_of_like_cost():
    lengths = [128] * 40 + [4] * 1280
    costs = collections.defaultdict(int)
    for rank in range(4):
        for batch in batches_of(0, rank, lengths=lengths, seq_len=128, gbs=8):
            costs[batch.window, batch.ga_index, rank // 2] += sum(
                n * (n + 1) // 2 for _, _, n in batch.samples)
    of_window = [cost for (window, *_), cost in costs.items() if window == 1]
    assert len(of_window) == 4 and max(of_window) < 1.8 * np.mean(of_window)


# --- WLB-LLM's packing ---------------------------------------------------------------------------

WLB = dict(lengths=RANDOM.choice([2, 5, 9, 100], 3000, p=[0.4, 0.3, 0.25, 0.05]), packing="wlb",
           equal_cost_tokens=30)


def work_of(batch):
    return sum((n / 30) ** 2 + n / 30 for _, _, n in batch.samples)


def test_wlb_sequences_are_of_like_work_and_unlike_length():
    made = [sampler(rank, **WLB) for rank in range(4)]
    by_step = collections.defaultdict(list)
    for batch in itertools.chain(*made):
        by_step[batch.window].append(batch)
        assert batch.seq_len <= 1.25 * 128
        assert batch.seq_len == max(2, sum(n for _, _, n in batch.samples))
    assert all(len(batches) == 8 for batches in by_step.values())
    fixed = collections.defaultdict(list)
    for batch in itertools.chain(*(sampler(rank, lengths=WLB["lengths"]) for rank in range(4))):
        fixed[batch.window].append(batch)

    def excess(steps):
        return np.mean([max(map(work_of, step)) / np.mean([*map(work_of, step)])
                        for step in steps.values()]) - 1

    assert excess(by_step) < excess(fixed) / 2


def test_wlb_changes_the_samples_of_steps_and_loses_none():
    def seen(steps, **changes):
        made = [sampler(rank, **changes) for rank in range(4)]
        counts = collections.Counter(
            sample for each in made for batch in take(each, 2 * steps) for sample in batch.samples)
        return counts, made[0]

    fixed = dict(lengths=WLB["lengths"])
    assert set(seen(1, **WLB)[0]) < set(seen(1, **fixed)[0])  # the first step keeps some back
    given, _ = seen(20, **fixed)
    came, made = seen(20, **WLB)
    waiting = given - came
    assert not came - given
    assert waiting and sum(n * times for (_, _, n), times in waiting.items()) == (
        made.metrics()["libra/wlb_waiting_tokens"])


def test_wlb_needs_the_length_of_equal_cost():
    with pytest.raises(libra.ConfigError, match="needs equal_cost_tokens"):
        sampler(packing="wlb")
    with pytest.raises(libra.ConfigError, match="not above 0"):
        list(sampler(packing="wlb", equal_cost_tokens=0))


# --- documents that are too long -----------------------------------------------------------------

@pytest.mark.parametrize("oversize, kept", [("truncate", 128), ("split", 300), ("drop", 0)])
def test_documents_longer_than_the_sequence_follow_the_policy(oversize, kept):
    batches = [batch for rank in range(4) for batch in batches_of(
        0, rank, lengths=[300, 84] + [128] * 17, oversize=oversize, last_window="drop",
        order="file-order", gbs=4)]
    parts = sorted((first, n) for batch in batches for d, first, n in batch.samples if d == 0)
    assert sum(n for _, n in parts) == kept
    if oversize == "split":
        assert parts == [(0, 128), (128, 128), (256, 44)]


def test_documents_longer_than_the_sequence_are_an_error_unless_told():
    with pytest.raises(libra.ConfigError, match="split"):
        sampler(lengths=[300] + [128] * 20)


@pytest.mark.parametrize("wrong", [dict(gbs=6), dict(pool_size=3), dict(dp_rank=4),
                                   dict(last_window="pad"), dict(order="random"),
                                   dict(packing="tight"), dict(grouping="fair"), dict(seq_len=0)])
def test_options_that_break_a_rule_are_an_error(wrong):
    with pytest.raises(libra.ConfigError):
        list(sampler(**wrong))


@pytest.mark.parametrize("last_window", ["carry", "drop"])
def test_documents_that_fill_no_step_are_an_error(last_window):
    with pytest.raises(libra.ConfigError, match=(
            "the 2 documents fill 1 packed sequences of 128 tokens, and an optimizer step takes "
            "gbs 8: choose a smaller gbs")):
        sampler(lengths=[5, 6], last_window=last_window)


def test_sizes_may_be_written_as_people_do():
    made = PooledBatchSampler([300] * 40, **{**SIZES, "seq_len": "1k", "dp_rank": 0})
    assert made.seq_len == 1024


# --- resuming ------------------------------------------------------------------------------------

@pytest.mark.parametrize("changes", [
    dict(last_window="carry"), dict(last_window="drop"), dict(packing="wlb", equal_cost_tokens=20),
    dict(packing="wlb", equal_cost_tokens=20, last_window="drop")], ids=str)
@pytest.mark.parametrize("epoch, taken", [(0, 3), (1, 4), (2, 5)])
def test_a_run_resumed_twice_in_the_middle_of_a_step_yields_the_rest(epoch, taken, changes):
    whole = batches_of(epoch, 1, **changes)
    made = sampler(1, **changes)
    made.set_epoch(epoch)
    got = take(made, taken)
    for _ in range(2):
        state = made.state_dict()
        made = sampler(1, **changes)
        made.load_state_dict(state)
        made.set_epoch(epoch)  # as training loops do
        got += take(made, 2)
    state = made.state_dict()
    made = sampler(1, **changes)
    made.load_state_dict(state)
    assert got + list(made) == whole
    assert [b.samples for b in got] == [b.samples for b in whole[:len(got)]]
    made.set_epoch(epoch + 1)
    assert list(made) == batches_of(epoch + 1, 1, **changes)


def test_the_state_can_be_told_what_was_trained_on():
    made = sampler()
    take(made, 5)
    assert made.state_dict(microbatches=3)["microbatches"] == 3


@pytest.mark.parametrize("epoch", [0, 2])
@pytest.mark.parametrize("plan", [  # (dp, pool_size, steps) after one another
    [(4, 2, 2), (2, 2, 1), (8, 4, 2), (4, 1, None)],
    [(1, 1, 1), (4, 4, 3), (2, 1, None)]], ids=str)
def test_a_run_goes_on_with_another_dp_or_p_at_the_end_of_a_step(epoch, plan):
    state, seen = None, collections.Counter()
    for dp, pool_size, steps in plan:
        states = []
        for rank in range(dp):
            made = sampler(rank, dp=dp, pool_size=pool_size)
            if state:
                made.load_state_dict(json.loads(json.dumps(state)))
            else:
                made.set_epoch(epoch)
            seen += origins(list(made) if steps is None else take(made, steps * 8 // dp))
            states.append(made.state_dict())
        assert all(each == states[0] for each in states)
        state = states[0]
    whole = [batch for rank in range(4) for batch in batches_of(epoch, rank)]
    assert seen == origins(whole)


def sampler_after(count):
    made = sampler()
    take(made, count)
    return made


@pytest.mark.parametrize("other, words", [
    (dict(dp=2), r"another dp \(4, now 2\): "), (dict(grouping="zigzag"), "another grouping"),
    (dict(by_load=True), "another by_load")])
def test_other_pools_in_the_middle_of_a_step_are_an_error(other, words):
    with pytest.raises(libra.ConfigError, match=words):
        sampler(**other).load_state_dict(sampler_after(3).state_dict())


SHARING = sampler().state_dict()["sharing"]


@pytest.mark.parametrize("wrong", [
    dict(epoch=-1), dict(microbatches=-3), dict(microbatches=10_000), dict(sharing=None),
    dict(epoch="0"), dict(epoch=None), dict(microbatches=2.0), dict(microbatches=1 << 70),
    dict(gbs=8.0), dict(sharing=[]), dict(sharing={}), dict(sharing=dict(dp=4)),
    *(dict(sharing={**SHARING, "dp": dp}) for dp in (0, -4, 100, "4", None))])
def test_a_state_that_cannot_be_is_an_error(wrong):
    state = {**sampler_after(2).state_dict(), **wrong}
    if wrong.get("sharing", 0) is None:
        del state["sharing"]
    with pytest.raises(libra.ConfigError, match="state") as raised:
        sampler().load_state_dict(state)
    assert "\n" not in str(raised.value)


def test_numbers_of_numpy_make_the_state_that_ints_make():
    made = sampler(gbs=np.int64(8), dp=np.int32(4), pool_size=np.int64(2), seq_len=np.int16(128),
                   seed=np.uint8(0), dp_rank=np.int64(0))
    made.set_epoch(np.int64(1))
    assert json.loads(json.dumps(made.state_dict(microbatches=np.int64(3)))) == {
        **sampler().state_dict(), "epoch": 1, "microbatches": 3}


def test_an_iterator_from_before_a_state_was_loaded_is_not_counted():
    made = sampler()
    start = made.state_dict()
    old = iter(made)
    first = [next(old).samples for _ in range(3)]
    made.load_state_dict(start)
    second = next(old).samples
    assert made.state_dict() == start
    assert [batch.samples for batch in made][:4] == [*first, second]


def test_the_state_at_the_end_of_an_epoch_is_none_of_these():
    whole = sampler()
    whole.load_state_dict(sampler().state_dict(microbatches=len(whole)))
    assert list(whole) == []


@pytest.mark.parametrize("wrong", [dict(grouping="fairest"), dict(dp_rank=9), dict(dp_rank=-1),
                                   dict(equal_cost_tokens=4096)])
def test_what_cannot_be_is_an_error_at_construction(wrong):
    with pytest.raises(libra.ConfigError):
        sampler(**wrong)


def test_pools_of_like_load_share_an_index():
    # DP 4, P 2: two pools at once. Production order leaves loads as they come.
    def heaviest(by_load):
        batches = [batches_of(0, rank, grouping="production", by_load=by_load)[:2]
                   for rank in range(4)]
        work = [[sum(tokens * (tokens + 1) // 2 for _, _, tokens in batch.samples)
                 for batch in replica] for replica in batches]
        return sum(max(work[0][ga] + work[1][ga], work[2][ga] + work[3][ga]) for ga in range(2))

    assert heaviest(True) <= heaviest(False)


def test_the_state_of_other_lengths_or_options_is_an_error():
    state = sampler_after(2).state_dict()
    for other in (sampler(lengths=LENGTHS[:-1]), sampler(seed=1), sampler(gbs=16)):
        with pytest.raises(libra.ConfigError, match="same ones"):
            other.load_state_dict(state)


# --- plans ---------------------------------------------------------------------------------------

def planned(**of_pool):
    options = libra.PlanOptions(q_heads=4, kv_heads=2, head_dim=8, dtype="fp64", block_tokens=16,
                                chunks=1)
    planner = Planner(libra.Pool(**of_pool), options)
    return planner, sampler(dp=2, pool_size=1, gbs=4, planner=planner)


def test_plans_are_those_of_the_batches():
    planner, made = planned()
    for batch in made:
        plan = libra._plans.find_plan(batch.plan)
        assert plan.core.sequences == [
            libra.PackedSequence(128, [n for _, _, n in batch.samples])]
        assert batch.runs == plan.runs
    assert planner.metrics()["libra/planner_wait_seconds"] >= 0


def test_a_pool_keeps_the_latest_plans():
    planner, made = planned(keep=3)
    ids = [batch.plan for batch in take(made, 6)]
    for plan_id in ids[3:]:
        libra._plans.find_plan(plan_id)
    with pytest.raises(libra.PlanError, match="keep"):
        libra._plans.find_plan(ids[2])


def test_a_planner_of_another_pool_is_an_error():
    planner, _ = planned()
    with pytest.raises(libra.ConfigError, match="P 2 x CP 1 needs 2"):
        sampler(planner=planner)


def test_a_forked_process_leaves_planners_and_pools_alone():
    planner, made = planned()
    batches = iter(made)
    next(batches)
    child = os.fork()
    if child == 0:  # as a DataLoader's worker, which may collect its copies
        try:
            next(batches), next(batches)
            os._exit(1)
        except libra.ConfigError as error:
            planner.pool.close()
            del batches, made, planner
            os._exit(0 if "forked" in str(error) else 1)
    ended = wait_for(child)
    os.kill(child, signal.SIGKILL) if ended is None else None
    assert ended == 0
    assert len(list(batches)) == len(made) - 1


def wait_for(child):
    for _ in range(200):
        process, status = os.waitpid(child, os.WNOHANG)
        if process:
            return status
        time.sleep(0.05)
    return None


def sampled_by_one_rank():
    """Another rank of the pool makes no window, no plan, no call."""
    pool = libra.Pool()
    options = libra.PlanOptions(q_heads=4, kv_heads=2, head_dim=8, dtype="fp64", chunks=1)
    if dist.get_rank() == 0:
        made = PooledBatchSampler(LENGTHS, seq_len=128, gbs=8, pool_size=2,
                                  planner=Planner(pool, options))
        assert len(list(made)) == len(made)
    dist.barrier()
    pool.close()


def test_planning_needs_no_other_rank(worlds):
    worlds(2).run(sampled_by_one_rank)


def replicas_of(cp, of_mesh):
    """DP and place among the replicas of a pool's group, which need not be the whole job's."""
    mesh = dist.device_mesh.init_device_mesh("cpu", (2, 2), mesh_dim_names=("pp", "dp"))
    pool = libra.Pool(mesh["dp"] if of_mesh else None)
    options = libra.PlanOptions(q_heads=4, kv_heads=2, head_dim=8, chunks=1, cp=cp)
    try:
        made = PooledBatchSampler(LENGTHS, seq_len=128, gbs=4, pool_size=pool.workers // cp,
                                  planner=Planner(pool, options))
        return made.dp, made.dp_rank
    except libra.ConfigError as error:
        return str(error)
    finally:
        pool.close()


def test_replicas_are_those_of_the_pools_group(worlds):
    assert worlds(4).run(replicas_of, 1, True) == [(2, 0), (2, 1)] * 2
    assert worlds(4).run(replicas_of, 2, False) == [(2, 0), (2, 0), (2, 1), (2, 1)]
    for error in worlds(4).run(replicas_of, 3, False):
        assert error.startswith("CP 3 does not divide the 4 ranks")
