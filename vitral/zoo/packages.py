"""Trained networks that packages carry, quantized here by onnxruntime on drawn data.

They come with `pip install 'vitral[networks]'`. The packages are not imported: only the model
files in them are read.

rapidocr-onnxruntime (Apache-2.0) holds PaddleOCR's mobile networks (Apache-2.0): whether a line of
text stands upside down, where text is, and what it says.
"""

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from vitral.zoo.subjects import MissingPackageError, Subject
from vitral.zoo.text import text_image

if TYPE_CHECKING:
    import onnx

__all__ = ["PACKAGED"]

Array = npt.NDArray[Any]
_PACKAGE = "rapidocr_onnxruntime"
_SAMPLES = 4
_OPSET = 13


def _ocr(name: str, file: str, height: int, width: int) -> Subject:
    def build(seed: int) -> "onnx.ModelProto":
        return _quantized(_model_file(name, file), (1, 3, height, width), seed)

    def inputs(model: "onnx.ModelProto", seed: int) -> Mapping[str, Array]:
        return {model.graph.input[0].name: text_image(height, width, seed + 1000)}

    source = "rapidocr-onnxruntime (Apache-2.0)"
    return Subject(name=name, source=source, build=build, inputs=inputs)


PACKAGED = (
    _ocr("ppocr-cls", "ch_ppocr_mobile_v2.0_cls_infer.onnx", 48, 192),
    _ocr("ppocr-det", "ch_PP-OCRv4_det_infer.onnx", 320, 320),
    _ocr("ppocr-rec", "ch_PP-OCRv4_rec_infer.onnx", 48, 320),
)


def _model_file(name: str, file: str) -> Path:
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise MissingPackageError(
            f"{name} needs rapidocr-onnxruntime; pip install 'vitral[networks]'"
        )
    return Path(spec.origin).parent / "models" / file


def _quantized(path: Path, shape: tuple[int, ...], seed: int) -> "onnx.ModelProto":
    """Static int8 in QDQ form, symmetric weights with a scale per channel."""
    import onnx
    from onnx import version_converter

    if find_spec("onnxruntime") is None:
        raise MissingPackageError("quantizing needs onnxruntime; pip install 'vitral[networks]'")
    from onnxruntime import quantization as q
    from onnxruntime.quantization.shape_inference import quant_pre_process

    float_model = version_converter.convert_version(onnx.load(path), _OPSET)
    _fix_shape(float_model, shape)
    with TemporaryDirectory() as folder:
        plain, ready, done = (Path(folder) / f"{part}.onnx" for part in ("plain", "ready", "done"))
        onnx.save(float_model, plain)
        quant_pre_process(plain, ready, skip_symbolic_shape=True)
        q.quantize_static(
            ready,
            done,
            _reader(float_model.graph.input[0].name, shape, seed),
            quant_format=q.QuantFormat.QDQ,
            activation_type=q.QuantType.QInt8,
            weight_type=q.QuantType.QInt8,
            per_channel=True,
            extra_options={"WeightSymmetric": True},
        )
        return onnx.load(done)


def _fix_shape(model: "onnx.ModelProto", shape: tuple[int, ...]) -> None:
    for dim, size in zip(model.graph.input[0].type.tensor_type.shape.dim, shape, strict=True):
        dim.Clear()
        dim.dim_value = size
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]


def _reader(name: str, shape: tuple[int, ...], seed: int) -> Any:
    from onnxruntime.quantization import CalibrationDataReader

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self._rows: Iterator[dict[str, Array]] = (
                {name: text_image(shape[2], shape[3], _SAMPLES * seed + i)} for i in range(_SAMPLES)
            )

        def get_next(self) -> dict[str, Array] | None:  # type: ignore[override]
            return next(self._rows, None)

    return Reader()
