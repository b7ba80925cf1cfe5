"""Trains a tiny stock Qwen3 with Transformers' own Trainer, the documents balanced over the ranks.

    torchrun --standalone --nproc-per-node 2 examples/trainer_qwen3.py --pool 2

`loss` and `grad_norm` of each step are the same for any number of ranks. Needs accelerate, as the
Trainer does.
"""

import argparse

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, Qwen3Config, Trainer, TrainingArguments

import libra

VOCABULARY, HEADS, KV_HEADS, HEAD_DIM = 61, 4, 2, 64


class PooledTrainer(Trainer):
    """Takes the sampler's batches as they are: Accelerate would deal them out to ranks again."""

    def __init__(self, *args, sampler, **keywords):
        super().__init__(*args, **keywords)
        self.sampler = sampler

    def get_train_dataloader(self):
        loader = DataLoader(libra.PackedDataset(self.train_dataset), batch_sampler=self.sampler,
                            collate_fn=libra.Collator())
        loader.set_epoch = self.sampler.set_epoch
        return loader


def made_up_documents():
    random = torch.Generator().manual_seed(0)
    lengths = torch.randint(1, 500, (300,), generator=random).tolist()
    return [(7 * n + 3 * torch.arange(tokens)) % VOCABULARY for n, tokens in enumerate(lengths)]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pool", type=int, default=1, help="P, replicas that balance together")
    parser.add_argument("--cp", type=int, default=1, help="ranks that share a sequence")
    parser.add_argument("--gbs", type=int, default=4, help="packed sequences of a step")
    parser.add_argument("--steps", type=int, default=6)
    return parser.parse_args()


def train(args):
    on_gpu = torch.cuda.is_available()
    training = TrainingArguments(  # before the pool: it starts torch.distributed
        "trainer_qwen3", max_steps=args.steps, per_device_train_batch_size=1, use_cpu=not on_gpu,
        bf16=on_gpu, learning_rate=1e-2, lr_scheduler_type="constant", logging_steps=1,
        save_strategy="no", report_to=[], disable_tqdm=True)
    documents = made_up_documents()
    pool = libra.Pool(workers=args.pool * args.cp, device=training.device)
    options = libra.PlanOptions(q_heads=HEADS, kv_heads=KV_HEADS, head_dim=HEAD_DIM, cp=args.cp,
                                dtype="bf16" if on_gpu else "fp32", block_tokens=64, chunks=1)
    sampler = libra.PooledBatchSampler(
        [len(document) for document in documents], seq_len=512, gbs=args.gbs, pool_size=args.pool,
        planner=libra.Planner(pool, options))
    training.gradient_accumulation_steps = sampler.microbatches

    libra.integrations.transformers.register()
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(
        Qwen3Config(vocab_size=VOCABULARY, hidden_size=64, intermediate_size=128,
                    num_hidden_layers=2, num_attention_heads=HEADS, num_key_value_heads=KV_HEADS,
                    head_dim=HEAD_DIM, use_cache=False),
        attn_implementation="libra")
    trainer = PooledTrainer(model, training, train_dataset=documents, sampler=sampler)
    trainer.train()
    pool.close()


def main():
    train(arguments())
    if dist.is_initialized():  # without the model, whose DDP would end the group holding the GIL
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
