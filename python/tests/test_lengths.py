"""Sample lengths from wherever they are."""

import struct
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import libra


class FakeDataset:
    """What a Hugging Face dataset shows of itself."""

    def __init__(self, table):
        self.data = type("Data", (), {"table": table})()


def write_idx(path, lengths):
    with open(path, "wb") as file:
        file.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 4, len(lengths), len(lengths) + 1))
        file.write(np.asarray(lengths, np.int32).tobytes())
        file.write(np.zeros(len(lengths), np.int64).tobytes())
        file.write(np.arange(len(lengths) + 1).astype(np.int64).tobytes())


def test_lengths_come_from_wherever_they_are(tmp_path):
    lengths = [3, 0, 7, 1]
    table = pa.table({"length": lengths})
    lists = pa.table({"input_ids": [[1] * n for n in lengths]})
    np.save(tmp_path / "l.npy", np.array(lengths))
    pq.write_table(table, tmp_path / "l.parquet")
    pq.write_table(lists, tmp_path / "ids.parquet")
    with pa.OSFile(str(tmp_path / "l.arrow"), "wb") as file, pa.ipc.new_stream(
            file, table.schema) as writer:
        writer.write_table(table)
    write_idx(tmp_path / "l.idx", lengths)
    (tmp_path / "l.txt").write_text("3\n0\n7\n1\n")
    sources = [lengths, np.array(lengths, np.int32), torch.tensor(lengths), pa.array(lengths),
               table, lists, FakeDataset(table), *map(str, sorted(tmp_path.iterdir()))]
    for source in sources:
        read = libra.read_lengths(source)
        assert read.dtype == np.int64 and read.tolist() == lengths, source


def test_a_hugging_face_dataset_gives_its_column():
    datasets = pytest.importorskip("datasets", reason="needs datasets")
    lengths = [3, 0, 7, 1]
    rows = datasets.Dataset.from_dict(
        {"input_ids": [[1] * n for n in lengths], "tokens": [n + 1 for n in lengths]})
    assert libra.read_lengths(rows).tolist() == lengths
    assert libra.read_lengths(rows, column="tokens").tolist() == [4, 1, 8, 2]
    assert libra.read_lengths(rows.select([2, 0])).tolist() == [7, 3]
    assert libra.read_lengths(rows["tokens"]).tolist() == [4, 1, 8, 2]


def test_a_megatron_index_is_read_as_megatron_writes_it(tmp_path):
    indexed = pytest.importorskip("megatron.core.datasets.indexed_dataset",
                                  reason="needs megatron-core")
    builder = indexed.IndexedDatasetBuilder(str(tmp_path / "tokens.bin"), dtype=np.int32)
    for document in ([3], [2, 5], [1, 1, 1]):
        for tokens in document:
            builder.add_item(torch.arange(tokens))
        builder.end_document()
    builder.finalize(str(tmp_path / "tokens.idx"))
    path = str(tmp_path / "tokens.idx")
    assert libra.read_lengths(path).tolist() == [3, 7, 3]
    assert libra.read_lengths(path, idx_unit="sequences").tolist() == [3, 2, 5, 1, 1, 1]
    assert libra.read_lengths(str(tmp_path / "tokens")).tolist() == [3, 7, 3]


@pytest.mark.parametrize("module, code", [
    ("torch", "libra.attention"), ("torch", "libra.Pool"), ("torch", "libra.PooledBatchSampler"),
    ("pyarrow", "libra.read_lengths('lengths.parquet')")])
def test_a_package_that_is_not_installed_is_named(module, code):
    program = f"import sys; sys.modules['{module}'] = None; import libra; {code}"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    last = ran.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: ") and last.endswith(f"pip install {module}"), ran.stderr


@pytest.mark.parametrize("wrong", [[1.5, 2.0], [[1, 2]], [3, -1], pa.table({"text": ["a"]}),
                                   "no-such-file.npy", "no-such-file.parquet",
                                   (length for length in [1, 2]), 3, None, [[1], [2, 3]],
                                   torch.ones(2, dtype=torch.bfloat16),
                                   torch.ones(2, requires_grad=True),
                                   torch.ones(2, dtype=torch.int64, device="meta"),
                                   pa.table({"input_ids": ["ab", "c"]}),
                                   pa.table([[1], [2]], names=["length", "length"])])
def test_what_is_no_length_is_an_input_error(wrong):
    with pytest.raises(libra.InputError) as raised:
        libra.read_lengths(wrong)
    assert "\n" not in str(raised.value)


def test_a_length_beyond_64_bits_is_named_as_it_is():
    with pytest.raises(libra.InputError, match=f"document 1 has {2 ** 63} tokens"):
        libra.read_lengths(np.array([1, 2 ** 63], np.uint64))


@pytest.mark.parametrize("nothing", [[], np.zeros(0), pa.chunked_array([], pa.int64())])
def test_no_document_is_no_length(nothing):
    assert libra.read_lengths(nothing).tolist() == []
