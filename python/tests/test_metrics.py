"""What a pool says of its passes."""

import json
import os

import pytest
import torch.distributed as dist

import libra
from pools import Case, shard_of, skewed


def measured(folder):
    pool = libra.Pool()
    case = Case(pool.workers, samples=skewed(pool.workers))
    plan = pool.plan(case.plan_options(), case.sequences())
    shard = shard_of(case, plan)
    path = os.path.join(folder, f"{dist.get_rank()}.json")

    def layer():
        q = shard.q.requires_grad_()
        libra.attention(q, shard.k, shard.v, plan=plan).sum().backward()

    layer()
    first = pool.metrics()
    with libra.profile(pool, path):
        layer()
        layer()
    second, third = pool.metrics(), pool.metrics()
    pool.close()
    with open(path, encoding="utf-8") as file:
        return first, second, third, json.load(file)["traceEvents"], plan.core.traffic


def test_metrics_are_sums_since_the_last_and_what_was_planned(worlds, tmp_path):
    results = worlds(2).run(measured, str(tmp_path))
    for first, second, third, events, traffic in results:
        assert first["libra/passes"] == 2 and second["libra/passes"] == 4
        assert first["libra/skew"] > first["libra/balance"] >= 1
        assert first["libra/tiles_moved"] > 0
        assert first["libra/pass_seconds"] >= first["libra/exposed_seconds"] >= 0
        assert first["libra/compute_seconds"] > 0
        assert third["libra/passes"] == 0 and third["libra/bytes_sent"] == 0
        names = [event["name"] for event in events]
        assert sum(name.startswith("forward local") for name in names) == 2
    sent = sum(second["libra/bytes_sent"] for _, second, *_ in results)
    received = sum(second["libra/bytes_received"] for _, second, *_ in results)
    traffic = results[0][-1]
    assert sent == received == 2 * (traffic["forward"] + traffic["backward"])


def test_a_device_that_is_not_there_is_an_error():
    with pytest.raises(libra.ConfigError, match="GPU|CUDA"):
        libra.Pool(device="cuda:99")


def test_a_profile_that_cannot_be_written_is_an_error_before_anything_runs(pool, tmp_path):
    with pytest.raises(FileNotFoundError), libra.profile(pool, tmp_path / "none" / "trace.json"):
        raise AssertionError("has begun")


def test_what_breaks_off_a_profile_is_what_is_raised(pool, tmp_path):
    with pytest.raises(KeyError), libra.profile(pool, tmp_path / "trace.json"):
        raise KeyError("a layer's")
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"] is not None
    with pytest.raises(KeyError), libra.profile(pool, tmp_path / "trace.json"):
        pool.close()
        raise KeyError("a layer's")
