"""Settings for every test: one BLAS thread per process.

Small matrix products on several spinning threads take five times as long when the machine is busy,
as it is under pytest-xdist. It must be set before numpy is imported.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
