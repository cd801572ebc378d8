"""The data that ranges are measured on: checked once, given out in batches."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper

from vitral.compiler.quantize.float_graph import FloatGraph
from vitral.errors import QuantizeError

__all__ = ["Calibration", "Samples", "load_samples", "read_arrays"]

Array = npt.NDArray[Any]
Calibration = Mapping[str, Array] | Array | str | Path


class Samples:
    """Samples for each input of a model, along the first axis; `batch` of them run at once."""

    def __init__(self, arrays: Mapping[str, Array], batch: int) -> None:
        self.arrays = dict(arrays)
        self.batch = batch
        self.count = next(iter(self.arrays.values())).shape[0]

    def __iter__(self) -> Iterator[dict[str, Array]]:
        for start in range(0, self.count, self.batch):
            yield {name: array[start : start + self.batch] for name, array in self.arrays.items()}

    def __len__(self) -> int:
        """Batches."""
        return -(-self.count // self.batch)

    def first(self, count: int) -> "Samples":
        """The first `count` samples, in whole batches."""
        whole = -(-count // self.batch) * self.batch
        return Samples({name: array[:whole] for name, array in self.arrays.items()}, self.batch)


def read_arrays(path: str | Path) -> dict[str, Array] | Array:
    """Arrays by name of an .npz file, or the one of an .npy file.

    Raises
    ------
    QuantizeError
        When it is neither.
    """
    try:
        with open(path, "rb") as file:
            found = np.load(file, allow_pickle=False)
            return found if isinstance(found, np.ndarray) else {n: found[n] for n in found.files}
    except (ValueError, EOFError, KeyError, OSError) as error:
        if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
            raise QuantizeError(f"{path}: {error.strerror}") from None
        raise QuantizeError(
            f"{path}: needs an .npz or .npy file of arrays: {' '.join(str(error).split())}"
        ) from None
    except Exception as error:  # zipfile's own for a damaged .npz
        raise QuantizeError(f"{path}: not an .npz file: {' '.join(str(error).split())}") from None


def load_samples(graph: FloatGraph, calibration: Calibration, batch: int) -> Samples:
    """Check calibration data against the inputs of a model.

    Parameters
    ----------
    calibration : mapping of input name to array, one array for a model of one input, or a path
        Array (samples, ...) of which the rest is the input's shape without its batch.
    batch : int
        Samples at once, where the model's own batch size is open.

    Raises
    ------
    QuantizeError
        For names, shapes and types that do not fit, no samples, or numbers that are not finite.
    """
    if isinstance(calibration, str | Path):
        calibration = read_arrays(calibration)
    if not isinstance(calibration, Mapping):
        if len(graph.inputs) != 1:
            raise QuantizeError(
                f"calibration: needs an array for each of {', '.join(graph.input_names)}, got one"
            )
        calibration = {graph.input_names[0]: np.asarray(calibration)}
    names, given = set(graph.input_names), set(calibration)
    if names != given:
        raise QuantizeError(
            f"calibration: needs arrays {', '.join(sorted(names))},"
            f" got {', '.join(sorted(given)) or 'none'}"
        )
    fixed = {size for i in graph.inputs if (size := _batch_size(i)) is not None}
    if len(fixed) > 1:
        raise QuantizeError(f"calibration: needs inputs of one batch size, got {sorted(fixed)}")
    size = fixed.pop() if fixed else None
    arrays = {i.name: _checked(i, np.asarray(calibration[i.name])) for i in graph.inputs}
    counts = {name: len(array) for name, array in arrays.items()}
    if len(set(counts.values())) > 1:
        raise QuantizeError(f"calibration: needs as many samples of each input, got {counts}")
    count = min(counts.values())
    if count == 0:
        raise QuantizeError("calibration: needs at least one sample, got none")
    if size is not None and count % size:
        raise QuantizeError(f"calibration: needs a multiple of the batch size {size}, got {count}")
    return Samples(arrays, size or batch)


def _batch_size(info: onnx.ValueInfoProto) -> int | None:
    dims = info.type.tensor_type.shape.dim
    return dims[0].dim_value if dims and dims[0].dim_value > 0 else None


def _checked(info: onnx.ValueInfoProto, array: Array) -> Array:
    tensor = info.type.tensor_type
    where = f"calibration: input {info.name!r}"
    dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    if array.dtype.kind == "f" and dtype == np.float32:
        array = array.astype(np.float32, copy=False)
    if array.dtype != dtype:
        raise QuantizeError(f"{where}: needs {dtype}, got {array.dtype}; scale it for the model")
    wanted = [d.dim_value if d.dim_value > 0 else None for d in tensor.shape.dim]
    if not wanted:
        raise QuantizeError(f"{where}: needs an input whose first axis is the batch, got a scalar")
    fits = array.ndim == len(wanted) and all(
        w is None or w == n for w, n in zip(wanted[1:], array.shape[1:], strict=False)
    )
    if not fits:
        text = ", ".join("?" if w is None else str(w) for w in wanted[1:])
        raise QuantizeError(f"{where}: needs shape [samples, {text}], got {list(array.shape)}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        sample = int(np.argwhere(~np.isfinite(array))[0][0])
        raise QuantizeError(f"{where}: needs finite numbers, got others in sample {sample}")
    return array
