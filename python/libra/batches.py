"""From a sampler's microbatches to a model's inputs: what a DataLoader fetches and collates."""

import torch

from libra import _core


class Fetched(tuple):
    """(batch, [(tokens, labels), ...]), by which who forgot the collate_fn is told so."""

    def __getitem__(self, index):
        raise _core.ConfigError(
            "packed batches need their own collate_fn: DataLoader(..., "
            "collate_fn=libra.Collator())")


class Inputs(dict):
    """A model's inputs; a plan that is asked for and not there has its reason."""

    def __missing__(self, key):
        if key == "libra_plan":
            raise _core.ConfigError(
                "the batch has no plan, since its sampler has no planner: "
                "libra.PooledBatchSampler(..., planner=libra.Planner(pool, options))")
        raise KeyError(key)


class PackedDataset(torch.utils.data.Dataset):
    """A map-style dataset of documents, fetched as `PackedBatch`es.

    An item is a mapping with `key` (and "labels", -100 where there is no loss, if you have them),
    or the tokens themselves. Raises InputError for a document that has not the tokens which its
    length promised.
    """

    def __init__(self, dataset, key="input_ids"):
        self.dataset = dataset
        self.key = key

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, index):
        return self.dataset[index]

    def __getitems__(self, batch):
        """(batch, [(tokens, labels), ...]); a label is the next token, -100 at a document's end."""
        self._check(batch)
        parts, known = [], {}
        for document, first, tokens in batch.samples:
            if document not in known:
                known = {document: self._document(document, batch.lengths.get(document))}
            ids, labels = known[document]
            parts.append((ids[first:first + tokens], labels[first:first + tokens]))
        return Fetched((batch, parts))

    def _check(self, batch):
        if not hasattr(batch, "samples"):
            raise _core.ConfigError(
                "a packed data set is fetched by packed batches: DataLoader(..., "
                "batch_sampler=libra.PooledBatchSampler(...))")
        if hasattr(self.dataset, "__len__") and len(self.dataset) < batch.documents:
            raise _core.ConfigError(
                f"the data set has {len(self.dataset)} documents, and lengths were given for "
                f"{batch.documents}: give the sampler the lengths of this data set")

    def _document(self, document, promised):
        item = self.dataset[document]
        mapping = hasattr(item, "keys")
        if mapping and self.key not in item:
            raise _core.InputError(
                f"document {document} has no '{self.key}': it has {', '.join(item.keys())}; "
                "tokenize first, or name the tokens with PackedDataset(dataset, key=...)")
        ids = torch.as_tensor(item[self.key] if mapping else item, dtype=torch.int64)
        if promised is not None and len(ids) != promised:
            raise _core.InputError(
                f"document {document} has {len(ids)} tokens where its length promised {promised}: "
                "give the sampler the lengths of this data set")
        labels = torch.as_tensor(item["labels"] if mapping and "labels" in item else ids,
                                 dtype=torch.int64)
        return ids, torch.cat([labels[1:], labels.new_full((min(1, len(ids)),), -100)])


class Collator:
    """Makes the model's inputs of what `PackedDataset` fetched. A collate_fn; needs no plan.

    Returns, for this rank's rows of the packed sequence (`batch.runs`), int64:
      input_ids [1, rows]; padding has pad_token.
      labels [1, rows]: the token that follows, already shifted; -100 where there is none. A sample
        that is a cut document's part ends with a label all the same. As shift_labels, too, by which
        Transformers knows that they are shifted.
      position_ids [1, rows], within the sample; padding counts on from 0 as one sample.
    and of the whole packed sequence:
      cu_seqlens [samples + 1], int32, without padding; max_seqlen, an int.
      libra_plan: the id for `libra.attention`; without a planner it is not there, and asking for
        it says why.

    batch_dim=False leaves out the leading 1. Raises ConfigError for what PackedDataset did not
    fetch.
    """

    def __init__(self, pad_token=0, batch_dim=True):
        self.pad_token = pad_token
        self.batch_dim = batch_dim

    def __call__(self, fetched):
        try:
            batch, parts = fetched
            sizes = [tokens for _, _, tokens in batch.samples]
        except (TypeError, ValueError, AttributeError):
            raise _core.ConfigError(
                "libra.Collator takes what libra.PackedDataset fetches: "
                "DataLoader(libra.PackedDataset(dataset), batch_sampler=..., "
                "collate_fn=libra.Collator())") from None
        padding = batch.seq_len - sum(sizes)
        ids = torch.cat([ids for ids, _ in parts] + [torch.full((padding,), self.pad_token)])
        labels = torch.cat([labels for _, labels in parts] + [torch.full((padding,), -100)])
        positions = torch.cat([torch.arange(tokens) for tokens in [*sizes, padding]])
        if len(ids) != batch.seq_len:
            raise _core.InputError(
                f"documents {sorted(set(batch))[:4]}... have {len(ids) - padding} tokens where "
                f"their lengths promise {sum(sizes)}")
        inputs = Inputs((name, self._own(tensor, batch.runs)) for name, tensor in
                        (("input_ids", ids), ("labels", labels), ("position_ids", positions)))
        inputs["shift_labels"] = inputs["labels"]
        inputs["cu_seqlens"] = torch.tensor([0, *sizes]).cumsum(0, dtype=torch.int32)
        inputs["max_seqlen"] = max(sizes, default=0)
        if batch.plan is not None:
            inputs["libra_plan"] = batch.plan
        return inputs

    def _own(self, tensor, runs):
        own = torch.cat([tensor[begin:end] for begin, end in runs] or [tensor[:0]])
        return own[None] if self.batch_dim else own
