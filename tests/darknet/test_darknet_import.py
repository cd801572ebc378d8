"""Darknet networks layer by layer, against its formulas written out in numpy."""

import numpy as np
import pytest

from vitral.compiler.frontends.darknet import import_darknet, write_weights
from vitral.compiler.ir import evaluate, verify
from vitral.errors import CompileError

IMAGE = (1, 3, 6, 6)
NET = "[net]\nchannels=3\nheight=6\nwidth=6\n"
RNG = np.random.default_rng(5)


def _random(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def _run(cfg: str, values: list[np.ndarray], x: np.ndarray) -> list[np.ndarray]:
    detector = import_darknet(NET + cfg, write_weights(values))
    verify(detector.graph)
    return evaluate(detector.graph, {"data": x})


def _convolved(x: np.ndarray, weight: np.ndarray, stride: int, pad: int) -> np.ndarray:
    """In float64, one output element after the other."""
    wide = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    size = weight.shape[2]
    rows = (wide.shape[2] - size) // stride + 1
    columns = (wide.shape[3] - size) // stride + 1
    result = np.zeros((1, len(weight), rows, columns))
    for row in range(rows):
        for column in range(columns):
            window = wide[
                0, :, row * stride : row * stride + size, column * stride : column * stride + size
            ]
            result[0, :, row, column] = (weight * window).sum(axis=(1, 2, 3))
    return result


def _column(values: np.ndarray) -> np.ndarray:
    return values.reshape(-1, 1, 1).astype(np.float64)


def test_convolution_with_batch_normalization() -> None:
    beta, gamma, mean, weight = _random(4), _random(4), _random(4), _random(4, 3, 3, 3)
    variance = np.array([0.0, 1e-9, 0.5, 2.0], np.float32)
    cfg = "[convolutional]\nbatch_normalize=1\nfilters=4\nsize=3\nstride=2\npad=1\nactivation=leaky"
    x = _random(*IMAGE)
    (y,) = _run(cfg, [beta, gamma, mean, variance, weight], x)
    sums = _convolved(x, weight, 2, 1)
    spread = np.sqrt(_column(variance)) + 0.000001
    normal = (sums - _column(mean)) / spread * _column(gamma) + _column(beta)
    expected = np.where(normal > 0, normal, 0.1 * normal)
    np.testing.assert_allclose(y, expected, rtol=1e-3, atol=1e-4)


ACTIVATIONS = {
    "linear": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "leaky": lambda x: np.where(x > 0, x, 0.1 * x),
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "swish": lambda x: x / (1 + np.exp(-x)),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations(activation: str) -> None:
    bias, weight, x = _random(2), _random(2, 3, 1, 1), _random(*IMAGE)
    (y,) = _run(f"[conv]\nfilters=2\nactivation={activation}", [bias, weight], x)
    expected = ACTIVATIONS[activation](_convolved(x, weight, 1, 0) + _column(bias))
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


def test_mish_of_large_values() -> None:
    x = np.array([-200.0, -30.0, 30.0, 200.0] * 27, np.float32).reshape(IMAGE)
    weight = np.eye(3, dtype=np.float32).reshape(3, 3, 1, 1)
    (y,) = _run("[conv]\nfilters=3\nactivation=mish", [np.zeros(3, np.float32), weight], x)
    np.testing.assert_allclose(y, np.where(x > 0, x, 0), atol=1e-5)


@pytest.mark.parametrize(
    ("size", "stride", "rows"), [(2, 2, 3), (2, 1, 6), (3, 2, 3), (5, 1, 6), (6, 6, 1)]
)
def test_pools_pad_behind_and_never_win(size: int, stride: int, rows: int) -> None:
    x = _random(*IMAGE) - np.float32(10)
    (y,) = _run(f"[maxpool]\nsize={size}\nstride={stride}", [], x)
    before = (size - 1) // 2
    wide = np.pad(x, ((0, 0), (0, 0), (before, size), (before, size)), constant_values=-np.inf)
    expected = np.array(
        [
            [
                wide[0, :, r * stride : r * stride + size, c * stride : c * stride + size].max(
                    axis=(1, 2)
                )
                for c in range(rows)
            ]
            for r in range(rows)
        ]
    ).transpose(2, 0, 1)[None]
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("layers", ["-2", "1"])
def test_routes_count_from_here_or_from_the_start(layers: str) -> None:
    x = _random(*IMAGE)
    cfg = "[maxpool]\nsize=2\nstride=2\n[upsample]\nstride=2\n[maxpool]\nsize=2\nstride=2\n"
    (y,) = _run(f"{cfg}[route]\nlayers={layers}", [], x)
    small = x.reshape(1, 3, 3, 2, 3, 2).max(axis=(3, 5))
    np.testing.assert_array_equal(y, small.repeat(2, axis=2).repeat(2, axis=3))


def test_route_joins_and_cuts() -> None:
    weights = [np.zeros(4, np.float32), _random(4, 3, 1, 1)]
    x = _random(*IMAGE)
    cfg = "[conv]\nfilters=4\nactivation=linear\n[route]\nlayers=-1\ngroups=2\ngroup_id=1\n"
    sums = _convolved(x, weights[1], 1, 0)
    (half,) = _run(cfg, weights, x)
    np.testing.assert_allclose(half, sums[:, 2:], rtol=1e-4, atol=1e-5)
    (joined,) = _run(f"{cfg}[route]\nlayers=-1,-2", weights, x)
    both = np.concatenate([sums[:, 2:], sums], axis=1)
    np.testing.assert_allclose(joined, both, rtol=1e-4, atol=1e-5)


def test_shortcut_adds() -> None:
    bias, weight, x = _random(3), _random(3, 3, 1, 1), _random(*IMAGE)
    cfg = "[conv]\nfilters=3\nactivation=linear\n[maxpool]\nsize=1\nstride=1\n"
    (y,) = _run(f"{cfg}[shortcut]\nfrom=-2\nactivation=relu", [bias, weight], x)
    sums = _convolved(x, weight, 1, 0) + _column(bias)
    np.testing.assert_allclose(y, np.maximum(2 * sums, 0), rtol=1e-4, atol=1e-5)


def test_dense_layers_and_softmax() -> None:
    bias, weight, x = _random(5), _random(5, 108), _random(*IMAGE)
    norms = [_random(5), _random(5), np.abs(_random(5))]
    cfg = "[connected]\noutput=5\nactivation=linear\nbatch_normalize=1\n[softmax]\ngroups=1"
    (y,) = _run(cfg, [bias, weight, *norms], x)
    gamma, mean, variance = norms
    sums = x.reshape(1, -1).astype(np.float64) @ weight.T
    logits = (sums - mean) / (np.sqrt(variance) + 1e-6) * gamma + bias
    grown = np.exp(logits - logits.max())
    np.testing.assert_allclose(y, grown / grown.sum(), rtol=1e-3, atol=1e-5)


def test_global_average() -> None:
    x = _random(*IMAGE)
    (y,) = _run("[avgpool]", [], x)
    np.testing.assert_allclose(y, x.mean(axis=(2, 3), keepdims=True), rtol=1e-5)


REGION = (
    "[conv]\nfilters=14\nactivation=linear\n"
    "[region]\nanchors=1.5,3, 6,0.75\nclasses=2\nnum=2\nsoftmax=1\n"
)


def test_region_layers_count_anchors_in_cells() -> None:
    values = [_random(14), _random(14, 3, 1, 1)]
    detector = import_darknet(NET + REGION, write_weights(values))
    (head,) = detector.heads
    assert head.anchors == ((0.25, 0.5), (1.0, 0.125))
    assert (head.classes, head.exclusive) == (2, True)
    assert detector.graph.outputs == (head.value,)


def test_yolo_layers_pick_anchors_in_pixels() -> None:
    values = [_random(7), _random(7, 3, 1, 1)]
    head_text = "[yolo]\nmask=1\nanchors=1,2, 3,1.5\nclasses=2\nnum=2\n"
    cfg = f"[conv]\nfilters=7\nactivation=linear\n{head_text}"
    detector = import_darknet(NET + cfg, write_weights(values))
    (head,) = detector.heads
    assert head.anchors == ((0.5, 0.25),)
    assert not head.exclusive


@pytest.mark.parametrize(
    ("cfg", "said"),
    [
        ("[lstm]\n", "layers that are not supported: lstm"),
        ("[conv]\nfilters=2\nactivation=gelu", "cfg line 5 [conv], layer 0: activation needs"),
        ("[conv]\nfilters=2\ngroups=2", "groups that divide 3 channels"),
        ("[conv]\nfilters=2\nxnor=1", "xnor=1 is not supported"),
        ("[conv]\nfilters=200", "needs 200 weights, 99 are left"),
        ("[maxpool]\nstride=0", "at least 1"),
        ("[route]\nlayers=0", "needs a layer before this one"),
        ("[route]\n", "needs layers="),
        ("[route]\nlayers=-1", "needs a layer before this one"),
        (
            "[maxpool]\nsize=2\nstride=2\n[maxpool]\nsize=2\nstride=2\n[shortcut]\nfrom=-2",
            "one shape",
        ),
        ("[shortcut]\n", "needs from="),
        ("[yolo]\nanchors=1,2\nclasses=2\nmask=3", "two anchors="),
        ("[yolo]\nanchors=1,2,3\nclasses=2\nnum=1", "two anchors="),
        ("[yolo]\nanchors=1,2\nclasses=2\nnum=1", "1 x (5 + 2) = 7 channels"),
        ("[maxpool]\nsize=2\nstride=2", "99 values are left behind"),
    ],
)
def test_refused(cfg: str, said: str) -> None:
    with pytest.raises(CompileError) as caught:
        import_darknet(NET + cfg, write_weights([np.zeros(99, np.float32)]))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
