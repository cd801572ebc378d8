"""`vitral serve` as a process, and `vitral run` and `vitral bench` against it."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hand_made import ARENA, double_module
from serving import PATIENCE, X, doubled, served

from vitral.cli import main
from vitral.config import CoreConfig
from vitral.runtime.device import open_device
from vitral.runtime.session import Session

TLS = Path(__file__).parents[1] / "data/tls"


@contextmanager
def serving(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command as a process, and the address that it prints."""
    command = [sys.executable, "-m", "vitral.cli", "serve", "--port", "0", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().split()[-1]
        finally:
            if process.poll() is None:
                process.kill()


def test_sigterm_ends_it_after_the_last_client_s_answer() -> None:
    with serving("--device", "reference") as (process, address):
        session = Session(double_module(), address)
        assert doubled(session)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
        session.close()
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


def test_once_ends_it_after_the_first_client(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("0123456789abcdef\n")
    secret.chmod(0o600)
    files = ["--tls-cert", str(TLS / "cert.pem"), "--tls-key", str(TLS / "key.pem")]
    with serving("--device", "null", "--once", "--secret-file", str(secret), *files) as (
        process,
        address,
    ):
        socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))).close()
        options = {"secret_file": secret, "ca_file": TLS / "cert.pem"}
        device = open_device(address, CoreConfig(), **options)
        device.allocate(ARENA)
        device.close()
        assert process.wait(PATIENCE) == 0


def test_both_ends_need_numpy_only() -> None:
    """What a board has: any other package that was imported would be named."""
    script = """
import sys
import numpy.random  # brings modules of its own

before = set(sys.modules)
from hand_made import double_module
from serving import doubled, served
from vitral.runtime.session import Session
with served("reference") as server, Session(double_module(), server.address) as session:
    assert doubled(session)
import vitral.cli.serve
tops = {name.partition(".")[0] for name in set(sys.modules) - before}
print(sorted(tops - sys.stdlib_module_names - {"hand_made", "numpy", "serving", "vitral"}))
"""
    path = str(Path(__file__).parents[1])
    run = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    assert run.stdout == "[]\n", run.stderr


def test_run_on_a_remote_device(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    double_module().save(tmp_path / "m.vitral")
    np.savez(tmp_path / "in.npz", x=X)
    with served() as server:
        arguments = ["--device", server.address, "--input", str(tmp_path / "in.npz")]
        files = ["--output", str(tmp_path / "out.npz"), "--json", "-"]
        assert main(["run", str(tmp_path / "m.vitral"), *arguments, *files]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["device"] == server.address
    assert result["layers"][0]["device"] == f"fsim@127.0.0.1:{server.port}"
    with np.load(tmp_path / "out.npz") as archive:
        np.testing.assert_array_equal(archive["y"], (2 * X.astype(int)).astype(np.int8))


def test_bench_on_a_remote_device(capsys: pytest.CaptureFixture[str]) -> None:
    with served(memory_bytes=64 << 20) as server:
        assert main(["bench", "c7", "--device", server.address, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["match"] is True


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("serve", "--device", "fpga"), "'fpga'"),
        (("serve", "--device", "tcp://127.0.0.1:7421"), "invalid choice"),
        (("serve", "--target", "moon"), "no target 'moon'"),
        (("serve", "--port", "99999"), "must be 0..65535"),
        (("serve", "--host", "0.0.0.0"), "that needs a secret and a certificate"),
        (("serve", "--host", "no.such.host.invalid"), "that needs a secret and a certificate"),
        (("serve", "--tls-cert", "c.pem"), "give --tls-cert and --tls-key"),
        (("serve", "--tls-cert", "/no/c", "--tls-key", "/no/k"), "/no/c, /no/k: no certificate"),
        (("serve", "--secret-file", "/no/such"), "/no/such: cannot read the secret"),
        (("serve", "--option", "x"), "must be like bitstream=core.bit, got 'x'"),
        (("serve", "--option", "speed=3"), "device fsim has no option 'speed'; known: none"),
        (("serve", "--memory", "4096", "--device", "null"), "8192 bytes of device memory"),
        (("serve", "--run-seconds", "0", "--device", "null"), "run_seconds must be more than 0"),
        (("run", "m.vitral", "--device", "udp://h:1", "--input", "x"), "no device 'udp://h:1'"),
        (("run", "m", "--device", "tcp://h:1", "--input", "x", "--trace", "t.fst"), "this machine"),
        (("bench", "c7", "--device", "tcp://h"), "must be like tcp://host:7421, got 'tcp://h'"),
        (("bench", "c7", "--device", "tcp://127.0.0.1:1"), "Connection refused"),
    ],
)
def test_refusals_are_one_line(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert message in captured.err
    assert captured.out == ""


def test_port_that_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with served("null") as server:
        arguments = ["serve", "--device", "null", "--port", str(server.port)]
        assert main(arguments) == 2
    assert "Address already in use" in capsys.readouterr().err
