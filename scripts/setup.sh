#!/bin/sh
# Makes .venv with the pinned versions, which need Python 3.11. Also needs g++, make and perl.
set -eu
for tool in g++ make perl; do
  command -v "$tool" > /dev/null || { echo "setup: $tool is needed; install it and try again" >&2; exit 2; }
done
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "setup: Python 3.11 or newer is needed; name it with PYTHON=" >&2; exit 2; }
# Waveform files (FST) are compressed with lz4 and zlib, which PyPI has no headers of.
for header in lz4.h zlib.h; do
  echo "#include <$header>" | g++ -x c++ -fsyntax-only - 2> /dev/null && continue
  if command -v apt-get > /dev/null && [ "$(id -u)" = 0 ]; then
    apt-get install -y -q liblz4-dev zlib1g-dev > /dev/null 2>&1 ||
      { apt-get update -q > /dev/null && apt-get install -y -q liblz4-dev zlib1g-dev > /dev/null; }
  else
    echo "setup: $header not found; waveforms need Debian's liblz4-dev and zlib1g-dev" >&2
  fi
done
# A browser for the tests of `vitral report`.
if ! command -v chromedriver > /dev/null; then
  if command -v apt-get > /dev/null && [ "$(id -u)" = 0 ]; then
    apt-get install -y -q --no-install-recommends chromium chromium-driver > /dev/null 2>&1 ||
      echo "setup: chromium cannot be installed; tests of the report's page are skipped" >&2
  else
    echo "setup: chromedriver not found; tests of the report need Debian's chromium-driver" >&2
  fi
fi
[ -x .venv/bin/python ] || "$PYTHON" -m venv .venv
.venv/bin/python -m pip install --quiet --disable-pip-version-check \
  --constraint constraints.txt --editable '.[dev]'
# An environment of its own for pynq, in whose code the tests run the simulated board.
.venv/bin/python scripts/pynq_environment.py > /dev/null
