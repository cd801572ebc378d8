"""Where a server is, and what must protect the way there."""

import ipaddress
import ssl
from os import PathLike

from vitral.errors import DeviceError
from vitral.runtime.device import DEFAULT_PORT, REMOTE

__all__ = [
    "CA_VARIABLE",
    "client_tls",
    "is_loopback",
    "parse_address",
    "server_tls",
    "show_address",
]

CA_VARIABLE = "VITRAL_CA_FILE"


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of ``tcp://host:port`` or ``tcp://[::1]:port``; DeviceError otherwise."""
    host, colon, port = text.removeprefix(REMOTE).rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    good = text.startswith(REMOTE) and bool(colon) and bool(host) and "/" not in host
    if not good or not (port.isascii() and port.isdecimal()) or not 0 < int(port) < 1 << 16:
        raise DeviceError(f"a remote device must be like tcp://host:{DEFAULT_PORT}, got {text!r}")
    return host, int(port)


def show_address(host: str, port: int) -> str:
    return f"{REMOTE}[{host}]:{port}" if ":" in host else f"{REMOTE}{host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether packets to it stay on this machine: "localhost", 127.0.0.0/8, ::1."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def server_tls(certificate: str | PathLike[str], key: str | PathLike[str]) -> ssl.SSLContext:
    """TLS 1.2 or later with this certificate; DeviceError when the files are no pair."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:  # ssl.SSLError is one
        raise DeviceError(f"{certificate}, {key}: no certificate and key: {error}") from None
    return context


def client_tls(ca_file: str | PathLike[str]) -> ssl.SSLContext:
    """TLS that trusts the certificates of this file only, and checks the host's name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_verify_locations(ca_file)
    except OSError as error:
        raise DeviceError(f"{ca_file}: no certificates: {error}") from None
    return context
