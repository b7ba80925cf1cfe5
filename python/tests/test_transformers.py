"""Stock Transformers models on libra.attention: tiny ones, from random weights."""

import copy
import functools
import itertools

import pytest
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen3Config, Qwen3MoeConfig

import libra
from libra.integrations import transformers as adapter
from libra import Collator, PackedDataset, Planner, PooledBatchSampler
from pools import deviation

VOCABULARY = 61
SHAPE = dict(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
             num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256,
             tie_word_embeddings=False, attention_dropout=0.0)
CONFIGS = {
    "qwen3": lambda: Qwen3Config(**SHAPE, head_dim=8),
    "qwen3-moe": lambda: Qwen3MoeConfig(**SHAPE, head_dim=8, moe_intermediate_size=16,
                                        num_experts=4, num_experts_per_tok=2),
    "llama": lambda: LlamaConfig(**SHAPE, head_dim=8),
}
TOKENS = 96


def model_of(name, implementation):
    """In fp64, norms too, which Transformers computes in fp32."""
    torch.manual_seed(11)
    model = AutoModelForCausalLM.from_config(
        CONFIGS[name](), attn_implementation=implementation, experts_implementation="eager",
        dtype=torch.float64)
    for module in model.modules():
        if type(module).__name__.endswith("RMSNorm"):
            module.forward = functools.partial(rms_norm, module)
    return model


def rms_norm(module, hidden):
    return torch.nn.functional.rms_norm(
        hidden, hidden.shape[-1:], module.weight, module.variance_epsilon)


def loss_of(logits, labels):
    """Summed, in fp64; Transformers' own is in fp32."""
    return torch.nn.functional.cross_entropy(logits[0], labels[0], reduction="sum")


def packed(samples, tokens=TOKENS, seed=1):
    random = torch.Generator().manual_seed(seed)
    ids = torch.randint(1, VOCABULARY, (1, tokens), generator=random)
    sizes = [*samples, tokens - sum(samples)]
    positions = torch.cat([torch.arange(n) for n in sizes])[None]
    labels = torch.cat([ids[0, 1:], torch.tensor([-100])])
    ends = torch.tensor(list(itertools.accumulate(n for n in sizes if n))) - 1
    labels[ends] = -100
    labels[sum(samples):] = -100
    return dict(input_ids=ids, position_ids=positions, use_cache=False), labels[None]


def plan_for(pool, samples, tokens=TOKENS, **options):
    given = dict(q_heads=4, kv_heads=2, head_dim=8, dtype="fp64", block_tokens=16, chunks=1)
    return pool.plan(libra.PlanOptions(**{**given, **options}),
                     [libra.PackedSequence(tokens, samples)])


def gradients_of(model):
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_stock_model_gives_the_logits_and_gradients_of_dense_attention(name):
    adapter.register()
    pool = libra.Pool()
    samples = [1, 40, 0, 7, 30]
    batch, labels = packed(samples)
    ours, dense = model_of(name, "libra"), model_of(name, "sdpa")
    logits = ours(**batch, libra_plan=plan_for(pool, samples).id).logits
    expected = dense(**batch).logits
    rows = slice(0, sum(samples))
    assert deviation(logits[:, rows], expected[:, rows]) < 1e-10
    loss_of(logits, labels).backward()
    loss_of(expected, labels).backward()
    theirs = gradients_of(dense)
    assert theirs
    for parameter, gradient in gradients_of(ours).items():
        assert deviation(gradient, theirs[parameter]) < 1e-10, parameter


def test_gradient_checkpointing_replays_the_plan():
    adapter.register()
    pool = libra.Pool()
    batch, labels = packed([60, 36])
    plain, recomputing = model_of("qwen3", "libra"), model_of("qwen3", "libra")
    recomputing.gradient_checkpointing_enable()
    recomputing.train()
    plan = plan_for(pool, [60, 36])
    for model in (plain, recomputing):
        loss_of(model(**batch, libra_plan=plan.id).logits, labels).backward()
    for name, gradient in gradients_of(recomputing).items():
        assert deviation(gradient, gradients_of(plain)[name]) < 1e-12


def test_a_missing_plan_is_an_error_unless_positions_may_be_used():
    adapter.register()
    model, (batch, _) = model_of("qwen3", "libra"), packed([60, 36])
    with pytest.raises(libra.ConfigError, match="libra_plan"):
        model(**batch)
    adapter.register("libra-alone", from_positions=True)
    alone, dense = model_of("qwen3", "libra-alone"), model_of("qwen3", "sdpa")
    assert deviation(alone(**batch).logits, dense(**batch).logits) < 1e-10
    batch["position_ids"] = batch["position_ids"] + 1
    with pytest.raises(libra.ConfigError, match="shards of one need a libra_plan"):
        alone(**batch)


@pytest.mark.parametrize("positions, samples", [
    ([0, 1, 2, 0, 1], (3, 2)),
    ([0, 1, 0, 0, 0, 0], (2, 1)),
    ([0, 0, 0, 1], (1, 1, 2)),
    ([0], (1,)),
    ([0, 0], (1,)),
    ([0, 1, 0], (2, 1)),
])
def test_positions_tell_samples_and_zeros_at_the_end_are_padding(positions, samples):
    assert adapter._samples_of(torch.tensor([positions]), len(positions)) == samples


def test_positions_of_a_zigzag_shard_are_an_error():
    with pytest.raises(libra.ConfigError, match="zigzag"):
        adapter._samples_of(torch.tensor([[0, 1, 2, 9, 10, 11]]), 6)


@pytest.mark.parametrize("change, words", [
    (dict(input_ids=torch.ones(2, TOKENS, dtype=torch.int64),
          position_ids=torch.arange(TOKENS).repeat(2, 1)), "a batch of 2"),
    (dict(attention_mask=torch.cat([torch.zeros(1, 6), torch.ones(1, TOKENS - 6)], 1).long()),
     "an attention mask"),
])
def test_what_packed_attention_cannot_do_is_an_error(change, words):
    adapter.register()
    batch = {**packed([60, 36])[0], **change}
    with pytest.raises(libra.ConfigError, match=words):
        model_of("qwen3", "libra")(**batch, libra_plan=plan_for(libra.Pool(), [60, 36]).id)


def test_a_sliding_window_is_an_error():
    adapter.register()
    config = Qwen3Config(**SHAPE, head_dim=8, use_sliding_window=True, sliding_window=8,
                         max_window_layers=0)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="libra")
    with pytest.raises(libra.ConfigError, match="sliding window"):
        model(**packed([96])[0], libra_plan=1)


def gather_lengths(cp):
    """Without a sampler each replica tells the others what it holds, for each microbatch."""
    adapter.register()
    pool = libra.Pool()
    replica = pool.worker // cp
    samples = [[60, 30], [1, 40, 0, 7]][replica]
    batch, _ = packed(samples, seed=replica)
    options = libra.PlanOptions(q_heads=4, kv_heads=2, head_dim=8, dtype="fp64", block_tokens=16,
                                chunks=1, cp=cp, tau=0.0)
    plan = pool.plan_together(options, samples, tokens=TOKENS)
    rows = plan.token_index()
    own = {name: value[:, rows] if torch.is_tensor(value) else value
           for name, value in batch.items()}
    logits = model_of("qwen3", "libra")(**own, libra_plan=plan.id).logits
    expected = model_of("qwen3", "sdpa")(**batch).logits[:, rows]
    pool.close()
    real = rows < sum(samples)
    return deviation(logits[:, real], expected[:, real]), plan.core.tiles_moved


@pytest.mark.parametrize("cp", [1, 2])
def test_lengths_may_be_gathered_for_each_microbatch(worlds, cp):
    for worst, moved in worlds(2 * cp).run(gather_lengths, cp):
        assert worst < 1e-10 and moved > 0


# --- training ------------------------------------------------------------------------------------

LENGTHS = [96, 5, 33, 80, 1, 17, 64, 90, 3, 41, 22, 8, 96, 70, 12, 55] * 4
STEPS = 20
GBS = 4


def documents():
    """Each counts on in threes: something to learn."""
    return [(7 * i + 3 * torch.arange(n)) % VOCABULARY for i, n in enumerate(LENGTHS)]


def train(name, implementation, cp, pool_size, home="contiguous"):
    """Loss of each of 20 steps, and the samples of each. Gradients are sums over tokens, averaged
    over the step's labels by hand, so that nothing depends on who computes what."""
    adapter.register()
    world, rank = dist.get_world_size(), dist.get_rank()
    dp = world // cp
    pool = libra.Pool(workers=pool_size * cp)
    options = libra.PlanOptions(q_heads=4, kv_heads=2, head_dim=8, dtype="fp64", block_tokens=16,
                                chunks=1, cp=cp, home=home)
    sampler = PooledBatchSampler(LENGTHS, seq_len=TOKENS, gbs=GBS, pool_size=pool_size,
                                 planner=Planner(pool, options))
    loader = DataLoader(PackedDataset(documents()), batch_sampler=sampler, collate_fn=Collator())
    model = model_of(name, implementation)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses, samples = [], []
    batches = endless(sampler, loader)
    for _ in range(STEPS):
        loss_sum, labels, seen = 0.0, 0, []
        for _ in range(GBS // dp):
            batch, inputs = next(batches)
            seen += batch.samples
            count = int((inputs["labels"] != -100).sum())
            given = ("input_ids", "position_ids", *["libra_plan"] * (implementation == "libra"))
            logits = model(**{key: inputs[key] for key in given}, use_cache=False).logits
            loss = loss_of(logits, inputs["labels"])
            loss.backward()
            loss_sum, labels = loss_sum + loss.item(), labels + count
        total = torch.tensor([loss_sum, float(labels)], dtype=torch.float64)
        dist.all_reduce(total)
        for parameter in model.parameters():
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            dist.all_reduce(parameter.grad)
            parameter.grad /= total[1]
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(total[0] / total[1]))
        samples.append(seen)
    pool.close()
    return losses, samples


def endless(sampler, loader):
    for epoch in itertools.count():
        sampler.set_epoch(epoch)
        yield from zip(copy.copy(sampler), loader)


@functools.cache
def baseline(world, name):
    losses, samples = world.run(train, name, "sdpa", 1, 1)[0]
    assert losses[-1] < 0.9 * losses[0]
    return losses, samples


@pytest.mark.parametrize("name, cp, pool_size, home", [
    ("qwen3", 1, 4, "contiguous"),
    ("qwen3", 2, 2, "zigzag-document"),
    ("qwen3", 4, 1, "zigzag-row"),
    ("qwen3-moe", 1, 2, "contiguous"),
])
def test_twenty_steps_give_the_loss_curve_of_training_without_libra(worlds, name, cp, pool_size,
                                                                    home):
    expected, expected_samples = baseline(worlds(1), name)
    results = worlds(4).run(train, name, "libra", cp, pool_size, home)
    for losses, _ in results:
        assert max(abs(a - b) for a, b in zip(losses, expected)) < 1e-10
    for step in range(STEPS):
        replicas = [samples[step] for _, samples in results[::cp]]
        assert sorted(itertools.chain(*replicas)) == sorted(expected_samples[step])


def test_integrations_are_there_without_an_import_of_their_own():
    assert libra.integrations.__all__ == ["megatron", "torchtitan", "transformers"]
    assert callable(libra.integrations.transformers.register)
    with pytest.raises(AttributeError, match="no attribute 'tensorflow'"):
        libra.integrations.tensorflow  # noqa: B018
