"""`vitral serve`: a device for other machines."""

import argparse
import logging
import signal
import sys
from dataclasses import replace

from vitral.cli.options import add_device_options, add_memory_options, positive
from vitral.cli.run import device_options
from vitral.errors import DeviceError
from vitral.runtime.device import DEFAULT_PORT, device_names, open_device
from vitral.targets import target_config

__all__ = ["add_parsers"]


def add_parsers(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("serve", help="serve a device to other machines")
    parser.add_argument("--device", choices=device_names(), default="fsim")
    parser.add_argument("--target", metavar="NAME", default="sim", help="the core it has")
    parser.add_argument("--host", default="127.0.0.1", help="where to listen (default %(default)s)")
    parser.add_argument(
        "--port", type=_port, default=DEFAULT_PORT, help="0 for a free one (default %(default)s)"
    )
    parser.add_argument(
        "--secret-file",
        metavar="FILE",
        help="secret of server and clients; VITRAL_SECRET_FILE or VITRAL_SECRET when not given",
    )
    parser.add_argument("--tls-cert", metavar="FILE.pem", help="certificate for TLS, with")
    parser.add_argument("--tls-key", metavar="FILE.pem", help="its key")
    parser.add_argument("--once", action="store_true", help="end after the first client")
    add_device_options(parser)
    _add_limits(parser)
    add_memory_options(parser)
    parser.set_defaults(command=_serve)


def _add_limits(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("limits")
    group.add_argument("--clients", type=positive, metavar="N", help="let in at one time")
    group.add_argument(
        "--memory", type=positive, metavar="BYTES", help="device memory, for all clients"
    )
    group.add_argument(
        "--store", type=positive, metavar="BYTES", help="modules' images kept on this host"
    )
    group.add_argument("--frame", type=positive, metavar="BYTES", help="arrays in one exchange")
    group.add_argument(
        "--run-seconds", type=float, metavar="SECONDS", help="that one program may take"
    )
    group.add_argument(
        "--queue-seconds", type=float, metavar="SECONDS", help="that a request may wait its turn"
    )
    group.add_argument(
        "--idle-seconds", type=float, metavar="SECONDS", help="that a client may be silent"
    )


def _serve(args: argparse.Namespace) -> int:
    from vitral.runtime.remote import Limits, Server
    from vitral.runtime.remote.address import server_tls
    from vitral.runtime.remote.auth import read_secret

    if bool(args.tls_cert) != bool(args.tls_key):
        raise DeviceError("TLS needs a certificate and its key; give --tls-cert and --tls-key")
    limits = replace(Limits(), **_given_limits(args))
    secret = read_secret(args.secret_file)
    tls = server_tls(args.tls_cert, args.tls_key) if args.tls_cert else None
    config, options = device_options(args, target_config(args.target))
    device = open_device(args.device, config, **{**options, **dict(args.option)})
    try:
        server = Server(
            device, args.host, args.port, secret=secret, tls=tls, limits=limits, once=args.once
        )
    except BaseException:
        device.close()
        raise
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: server.stop())
    print(f"serving {args.device}, core {config.digest[:12]}, on {server.address}", flush=True)
    server.serve()
    return 0


def _given_limits(args: argparse.Namespace) -> dict[str, int | float]:
    given = {
        "clients": args.clients,
        "memory_bytes": args.memory,
        "store_bytes": args.store,
        "frame_bytes": args.frame,
        "run_seconds": args.run_seconds,
        "queue_seconds": args.queue_seconds,
        "idle_seconds": args.idle_seconds,
    }
    return {name: value for name, value in given.items() if value is not None}


def _port(text: str) -> int:
    value = int(text)
    if not 0 <= value < 1 << 16:
        raise argparse.ArgumentTypeError(f"must be 0..65535, got {text}")
    return value
