"""Runs a task for many seeds in processes that may hang, die or run out of memory."""

import multiprocessing
import resource
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

__all__ = ["run_all"]

Task = Callable[[int], Any]
_MEMORY = 4 << 30
"""Bytes of address space of a process."""


@dataclass
class _Worker:
    process: BaseProcess
    pipe: Connection
    seed: int
    since: float


def run_all(task: Task, seeds: Iterable[int], *, jobs: int, timeout: float) -> Iterator[tuple]:
    """(seed, result) for each seed, in the order of completion.

    The result is the task's; or the text "no end after ... s" or "died" of one that did not give
    any; or what it raised, as text.
    """
    waiting = iter(seeds)
    workers = [w for w in (_started(task, waiting) for _ in range(jobs)) if w is not None]
    try:
        while workers:
            ready = wait([w.pipe for w in workers], timeout=0.5)
            for worker in list(workers):
                found = _result(worker, worker.pipe in ready, timeout)
                if found is None:
                    continue
                yield worker.seed, found[0]
                if not (_next(worker, waiting) if found[1] else False):
                    _stop(worker)
                    workers.remove(worker)
                    again = None if found[1] else _started(task, waiting)
                    workers += [again] if again is not None else []
    finally:
        for worker in workers:
            _stop(worker)


def _started(task: Task, waiting: Iterator[int]) -> _Worker | None:
    seed = next(waiting, None)
    if seed is None:
        return None
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(task, theirs), daemon=True)
    process.start()
    theirs.close()
    ours.recv()  # once all is imported, which is not the task's time
    ours.send(seed)
    return _Worker(process, ours, seed, time.monotonic())


def _next(worker: _Worker, waiting: Iterator[int]) -> bool:
    """Gives the worker another seed, if there is one."""
    seed = next(waiting, None)
    if seed is None:
        return False
    worker.seed, worker.since = seed, time.monotonic()
    worker.pipe.send(seed)
    return True


def _result(worker: _Worker, ready: bool, timeout: float) -> tuple[Any, bool] | None:
    """The result and whether the process goes on; None when there is none yet."""
    if ready:
        try:
            return worker.pipe.recv(), True
        except (EOFError, ConnectionError):
            worker.process.join()
            return f"died with exit code {worker.process.exitcode}", False
    if time.monotonic() - worker.since > timeout:
        return f"no end after {timeout:g} s", False
    return None


def _stop(worker: _Worker) -> None:
    worker.process.kill()
    worker.process.join()
    worker.pipe.close()


def _serve(task: Task, pipe: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    pipe.send("ready")
    while True:
        seed = pipe.recv()
        try:
            result = task(seed)
        except Exception as error:  # the caller reports it with the seed
            result = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        pipe.send(result)
