"""From a sampler's microbatches to a model's inputs: what a DataLoader fetches and collates."""

import torch

from libra import _core


class PackedDataset(torch.utils.data.Dataset):
    """A map-style dataset of documents, fetched as `PackedBatch`es.

    An item is a mapping with `key` (and "labels", -100 where there is no loss, if you have them),
    or the tokens themselves.
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
        parts, known = [], {}
        for document, first, tokens in batch.samples:
            if document not in known:
                known = {document: self._document(document)}
            ids, labels = known[document]
            parts.append((ids[first:first + tokens], labels[first:first + tokens]))
        return batch, parts

    def _document(self, document):
        item = self.dataset[document]
        mapping = hasattr(item, "keys")
        ids = torch.as_tensor(item[self.key] if mapping else item, dtype=torch.int64)
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
      libra_plan: the id for `libra.attention`; left out without a planner.

    batch_dim=False leaves out the leading 1.
    """

    def __init__(self, pad_token=0, batch_dim=True):
        self.pad_token = pad_token
        self.batch_dim = batch_dim

    def __call__(self, fetched):
        batch, parts = fetched
        sizes = [tokens for _, _, tokens in batch.samples]
        padding = batch.seq_len - sum(sizes)
        ids = torch.cat([ids for ids, _ in parts] + [torch.full((padding,), self.pad_token)])
        labels = torch.cat([labels for _, labels in parts] + [torch.full((padding,), -100)])
        positions = torch.cat([torch.arange(tokens) for tokens in [*sizes, padding]])
        if len(ids) != batch.seq_len:
            raise _core.InputError(
                f"documents {sorted(set(batch))[:4]}... have {len(ids) - padding} tokens where "
                f"their lengths promise {sum(sizes)}")
        inputs = {name: self._own(tensor, batch.runs) for name, tensor in
                  (("input_ids", ids), ("labels", labels), ("position_ids", positions))}
        inputs["shift_labels"] = inputs["labels"]
        inputs["cu_seqlens"] = torch.tensor([0, *sizes]).cumsum(0, dtype=torch.int32)
        inputs["max_seqlen"] = max(sizes, default=0)
        if batch.plan is not None:
            inputs["libra_plan"] = batch.plan
        return inputs

    def _own(self, tensor, runs):
        own = torch.cat([tensor[begin:end] for begin, end in runs] or [tensor[:0]])
        return own[None] if self.batch_dim else own
