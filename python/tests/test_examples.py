"""The examples as a user starts them, tiny."""

import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TINY = ("--seq-len 512 --gbs 4 --hidden 32 --layers 2 --heads 4 --kv-heads 2 --head-dim 8 "
        "--vocabulary 61 --block 64 --chunks 1 --steps 6 --oversize split --lr 0.01").split()


def launch(tmp_path, ranks, example, *options):
    """What it says."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
               str(ranks), str(ROOT / "examples" / example), *options]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=250, cwd=tmp_path,
                         env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout


def train(tmp_path, ranks, *options):
    log = tmp_path / "log.jsonl"
    said = launch(tmp_path, ranks, "train_qwen3.py", "--lengths", str(ROOT / "data/mix.npy"),
                  "--json", str(log), *TINY, *options)
    (tmp_path / "said").write_text(said)
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_qwen3_trains_along_one_loss_curve_whatever_the_method_and_layout(tmp_path):
    curves = {}
    for name, ranks, options in [
            ("one rank", 1, "--attention none"),
            ("P2", 2, "--pool 2"),
            ("CP2 ulysses, FSDP2", 2, "--cp 2 --attention ulysses --parallel fsdp2")]:
        steps = train(tmp_path, ranks, "--dtype", "fp64", *options.split())
        assert len(steps) == 6
        curves[name] = [step["loss"] for step in steps]
        assert steps[-1]["libra/planner_wait_seconds"] >= 0
    first = curves.pop("one rank")
    assert first[-1] < first[0]
    for name, losses in curves.items():  # Transformers' norms are in fp32
        assert losses == pytest.approx(first, rel=1e-5), name


def test_wlb_packing_trains_on_other_samples_and_says_so(tmp_path):
    lengths = np.random.default_rng(1).choice([16, 40, 480], 800, p=[0.5, 0.48, 0.02])
    np.save(tmp_path / "lengths.npy", lengths)
    steps = train(tmp_path, 1, "--lengths", str(tmp_path / "lengths.npy"),
                  *"--attention none --steps 4 --packing wlb".split())
    waiting = [step["libra/wlb_waiting_tokens"] for step in steps]
    assert max(waiting) > 0
    for step, before, after in zip(steps[1:], waiting, waiting[1:]):
        came = step["tokens"] - before + after  # what one step of fixed has
        assert 0.8 * 4 * 512 < came <= 4 * 512
        assert step["peak_memory_gb"] > 0.1
    said = (tmp_path / "said").read_text()
    assert "packing wlb: steps train on other samples than with fixed" in said
    assert f"step 4/4  loss {steps[3]['loss']:.4f}" in said
    assert f"{waiting[3]} tokens wait for later steps" in said


def test_qwen3_moe_trains_with_recompute_and_a_trace(tmp_path):
    trace = tmp_path / "trace.json"
    steps = train(tmp_path, 2, *"--pool 2 --experts 4 --checkpointing --steps 2 --trace".split(),
                  str(trace))
    assert steps[-1]["libra/balance"] <= steps[-1]["libra/skew"]
    assert json.loads(trace.read_text())["traceEvents"]


def test_transformers_own_trainer_has_one_loss_curve_for_any_ranks(tmp_path):
    pytest.importorskip("accelerate", reason="the Trainer needs accelerate")
    curves = []
    for ranks, options in [(1, ""), (2, "--pool 2"), (2, "--cp 2")]:
        said = launch(tmp_path, ranks, "trainer_qwen3.py", *options.split())
        curves.append(re.findall(r"'loss': '([0-9.]+)', 'grad_norm': '([0-9.]+)'", said))
        assert len(curves[-1]) == 6
    assert curves[0] == curves[1] == curves[2]
    assert float(curves[0][-1][0]) < float(curves[0][0][0])
