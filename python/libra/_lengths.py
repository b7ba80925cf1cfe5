"""Sample lengths from wherever they are."""

import os

import numpy as np

from libra import _core


def read_lengths(source, *, column="length", idx_unit="documents", seed=0):
    """Tokens of each document, int64 [documents].

    Args:
      source: a list, array or tensor of lengths; a pyarrow array, table or a Hugging Face dataset;
        or a path: .parquet, .arrow, .npy, a Megatron .idx, .jsonl, text; or "synthetic:NAME".
      column: of tables and datasets; without it, the lengths of the lists in `input_ids` count.
      idx_unit: of a Megatron .idx: "documents" or "sequences".
      seed: of synthetic ones.
    Raises InputError for files that are missing or damaged and lengths that are negative or no
    whole numbers.
    """
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        if path.endswith((".parquet", ".arrow")):
            return _of_table(_read_table(path, column), column, path)
        return _core.read_lengths(path, idx_unit=idx_unit, seed=seed)
    table = getattr(getattr(source, "data", None), "table", source)  # of a Hugging Face dataset
    if hasattr(table, "column_names"):
        lengths = _of_table(table, column, "the data set")
        rows = getattr(source, "_indices", None)  # which a selection or shuffle has of the table
        return lengths if rows is None else lengths[rows.column(0).to_numpy()]
    return _as_lengths(source.to_numpy() if hasattr(source, "to_numpy") else source)


def _read_table(path, column):
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ModuleNotFoundError as error:
        raise ImportError(
            f"lengths from {path} need {error.name}, which is not installed: pip install pyarrow"
        ) from None

    try:
        if path.endswith(".parquet"):
            names = pq.read_schema(path).names
            return pq.read_table(path, columns=[column if column in names else "input_ids"])
        with pa.memory_map(path) as file:
            try:
                return pa.ipc.open_stream(file).read_all()
            except pa.ArrowInvalid:
                return pa.ipc.open_file(file).read_all()
    except (OSError, pa.ArrowInvalid) as error:
        raise _core.InputError(f"{path}: {error}") from error


def _of_table(table, column, where):
    import pyarrow.compute as pc

    if column in table.column_names:
        return _as_lengths(table.column(column).to_numpy())
    if "input_ids" in table.column_names:
        return _as_lengths(pc.list_value_length(table.column("input_ids")).to_numpy())
    raise _core.InputError(
        f"{where}: neither a column '{column}' nor input_ids; there are "
        f"{', '.join(table.column_names)}")


def _as_lengths(values):
    try:
        array = np.asarray(values)
    except ValueError:  # lists of unlike lengths
        array = np.asarray(values, dtype=object)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise _core.InputError(
            f"lengths must be whole numbers in one dimension, not {array.dtype} in {array.ndim}; "
            "of a list of documents, [len(document) for document in documents]")
    array = np.ascontiguousarray(array, dtype=np.int64)
    if (array < 0).any():
        raise _core.InputError(f"document {int((array < 0).argmax())} has a negative length")
    return array
