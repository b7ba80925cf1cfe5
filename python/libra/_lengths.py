"""Sample lengths from wherever they are."""

import os

import numpy as np

from libra import _core
from libra._typed import typed


@typed
def read_lengths(source, *, column: str = "length", idx_unit: str = "documents",
                 seed: int = 0):
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
    if seed < 0:
        _core.refuse("read_lengths", "seed", seed, "at least 0")
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        if path.endswith((".parquet", ".arrow")):
            return _of_table(_read_table(path, column), column, path)
        return _core.read_lengths(path, idx_unit=idx_unit, seed=seed)
    table = source
    if not isinstance(source, np.ndarray) and not hasattr(source, "to_numpy"):
        table = getattr(getattr(source, "data", None), "table", source)  # of a Hugging Face dataset
    if hasattr(table, "column_names") and hasattr(table, "column"):  # a stream has no columns
        lengths = _of_table(table, column, "the data set")
        rows = getattr(source, "_indices", None)  # which a selection or shuffle has of the table
        return lengths if rows is None else lengths[rows.column(0).to_numpy()]
    return _as_lengths(source)


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
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        if column in table.column_names:
            return _as_lengths(table.column(column))
        if "input_ids" in table.column_names:
            return _as_lengths(pc.list_value_length(table.column("input_ids")))
    except (pa.ArrowException, KeyError) as error:  # other types; two columns of a name
        raise _core.InputError(f"{where}: {error}") from None
    raise _core.InputError(
        f"{where}: neither a column '{column}' nor input_ids; there are "
        f"{', '.join(table.column_names)}")


def _as_lengths(values):
    array = _as_array(values)
    if array.size == 0 and array.ndim == 1:
        return np.zeros(0, dtype=np.int64)
    found = f"{array.dtype} in {array.ndim}" if array.ndim else f"a {type(values).__name__}"
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise _core.InputError(
            f"lengths must be whole numbers in one dimension, not {found}; "
            "of a list of documents, [len(document) for document in documents]")
    if array.max() > np.iinfo(np.int64).max:
        raise _core.InputError(f"document {int(array.argmax())} has {array.max()} tokens: there "
                               "may be up to 2^40")
    array = np.ascontiguousarray(array, dtype=np.int64)
    if (array < 0).any():
        raise _core.InputError(f"document {int((array < 0).argmax())} has a negative length")
    return array


def _as_array(values):
    try:
        return np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    except (TypeError, ValueError, RuntimeError):  # what numpy does not know, as bfloat16
        return np.asarray(None)
