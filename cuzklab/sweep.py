"""One function for many arguments: in processes of this machine, or on a cluster; resumable, the same in any order.

A sweep is a list of tasks. Results are written to a journal as they come, so an interrupted sweep goes on where it
was; they are returned in the order of the tasks, whoever computed them and in whatever order they came. A worker that
dies takes nothing with it: its task is given to another, and a task is answered once.
"""

import hashlib
import json
import os
import queue as queues
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from cuzklab.errors import BadInput

# A task during which its process died this often is blamed for it and given up.
MOST_DEATHS = 3

Function = Callable[..., Any]
Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class Task:
    """One call of a sweep's function.

    Attributes
    ----------
    arguments : mapping
        Keyword arguments; values that JSON can hold, since they make up the task's key.
    label : str
        A few words for progress and errors.
    """

    arguments: Mapping[str, Any]
    label: str = ""

    def key(self, salt: str) -> str:
        """What a journal knows the task by: a hash of its arguments and of what else the result depends on."""
        text = json.dumps([salt, self.arguments], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Outcome:
    """What became of a task.

    Attributes
    ----------
    task : Task
    value : Any
        What the function returned, as JSON gives it back; None where it failed.
    error : str
        Empty, or one line: what the function raised, or that its process died.
    resumed : bool
        Taken from the journal of an earlier sweep.
    """

    task: Task
    value: Any = None
    error: str = ""
    resumed: bool = False


@dataclass
class Journal:
    """Answers that are there already: one JSON line each, appended and put on the disk before anything relies on it.

    A line that a crash tore is dropped; a failure is not kept, so that it is tried again.
    """

    path: Path
    answers: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        whole = 0
        if self.path.exists():
            with open(self.path, "rb") as file:
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    try:
                        record = json.loads(line)
                        self.answers[record["key"]] = record["value"]
                    except (ValueError, KeyError, TypeError):
                        raise BadInput(
                            f"{self.path}: byte {whole}: not a journal of a sweep; remove it to begin anew"
                        ) from None
                    whole += len(line)
            if whole < self.path.stat().st_size:
                os.truncate(self.path, whole)

    def add(self, key: str, value: Any) -> None:
        with open(self.path, "ab") as file:
            file.write(json.dumps({"key": key, "value": value}).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self.answers[key] = value


def sweep(
    function: Function,
    tasks: Sequence[Task],
    *,
    journal: Path | None = None,
    salt: str = "",
    processes: int | None = None,
    cluster: str | None = None,
    gpus: Sequence[str] = (),
    progress: Progress = lambda share, words="": None,
) -> list[Outcome]:
    """Call a function for every task.

    Parameters
    ----------
    function : callable
        Of a module (workers import it by name). Returns what JSON can hold. Its results may depend on its arguments
        alone, so that they are the same in any order and on any machine.
    tasks : sequence of Task
        No two with equal arguments.
    journal : Path, optional
        File that keeps the answers; where it exists, what it holds is not computed again.
    salt : str
        What else results depend on (versions, hashes of inputs); another salt makes a journal's answers void.
    processes : int, optional
        Of this machine; all its cores by default, or one a GPU. 0 computes in this one. Ignored with `cluster`.
    cluster : str, optional
        Address of a running `dask.distributed` scheduler (``tcp://host:8786``), or ``local`` for one on this machine.
    gpus : sequence of str
        Indices or UUIDs; each process gets one as ``CUDA_VISIBLE_DEVICES``, so that no two measure on one GPU.
    progress : callable (share, words)

    Returns
    -------
    list of Outcome
        One for each task, in their order. A task that raised has its error; the others go on.

    Raises
    ------
    BadInput
        Two equal tasks; a journal that is none; a cluster that cannot be reached, or the extra ``cluster`` is missing.
    """
    keys = [task.key(salt) for task in tasks]
    if len(set(keys)) < len(keys):
        raise BadInput("a sweep has two tasks with the same arguments; give each once")
    kept = Journal(journal) if journal else None
    outcomes: dict[int, Outcome] = {}
    for number, (task, key) in enumerate(zip(tasks, keys, strict=True)):
        if kept and key in kept.answers:
            outcomes[number] = Outcome(task, kept.answers[key], resumed=True)
    todo = [number for number in range(len(tasks)) if number not in outcomes]
    words = f"{len(outcomes)} of {len(tasks)} were there already" if outcomes else ""
    progress(len(outcomes) / max(1, len(tasks)), words)
    if todo:
        if cluster:
            run = _on_cluster(cluster, gpus)
        else:
            run = _here if processes == 0 else _in_processes(processes or len(gpus) or _cores(), gpus)
        for number, value, error in run(function, {number: tasks[number] for number in todo}):
            if not error:
                value = json.loads(json.dumps(value))  # the same whether it was computed now or read from a journal
                if kept:
                    kept.add(keys[number], value)
            outcomes[number] = Outcome(tasks[number], value, error)
            progress(len(outcomes) / len(tasks), f"{len(outcomes)} of {len(tasks)}: {tasks[number].label}")
    return [outcomes[number] for number in range(len(tasks))]


_Answers = Iterator[tuple[int, Any, str]]


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def _call(function: Function, arguments: Mapping[str, Any]) -> tuple[Any, str]:
    """In the worker. An exception becomes a line: not every exception can travel between processes."""
    try:
        return function(**arguments), ""
    except Exception as error:
        text = " ".join(str(error).split())
        return None, text if isinstance(error, BadInput) and text else f"{type(error).__name__}: {text}"


def _here(function: Function, todo: Mapping[int, Task]) -> _Answers:
    """In this process, one after another."""
    for number, task in todo.items():
        yield number, *_call(function, task.arguments)


def _take_gpu(gpus: Any) -> None:
    """In a new process: one GPU of its own."""
    try:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpus.get_nowait()
    except queues.Empty:  # more processes than GPUs: refused before the start
        raise RuntimeError("no GPU is left for this process") from None


def _in_processes(processes: int, gpus: Sequence[str]) -> Callable[[Function, Mapping[int, Task]], _Answers]:
    """A pool that is made anew when one of its processes dies, for that makes the whole pool unusable."""
    import multiprocessing
    from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
    from concurrent.futures.process import BrokenProcessPool

    if gpus and processes > len(gpus):
        raise BadInput(f"{processes} processes for {len(gpus)} GPUs: a measurement must not share a GPU")
    context = multiprocessing.get_context("spawn")  # a fork would inherit threads' locks

    def run(function: Function, todo: Mapping[int, Task]) -> _Answers:
        left, deaths = dict(todo), dict.fromkeys(todo, 0)
        alone: list[int] = []  # under suspicion: each gets a pool of its own, so that no other is blamed
        while left:
            suspects = [alone[0]] if alone else list(left)
            width = 1 if alone else min(processes, len(left))
            start: dict[str, Any] = {}
            if gpus:
                free = context.Queue()
                for gpu in gpus[:width]:
                    free.put(gpu)
                start = {"initializer": _take_gpu, "initargs": (free,)}
            pool = ProcessPoolExecutor(width, mp_context=context, **start)
            try:
                waiting = iter(suspects)
                number = suspects[0]
                running = {pool.submit(_call, function, left[n].arguments): n for n in islice(waiting, width)}
                while running:
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        number = running.pop(future)
                        value, error = future.result()
                        del left[number]
                        if number in alone:
                            alone.remove(number)
                        yield number, value, error
                        if (following := next(waiting, None)) is not None:
                            running[pool.submit(_call, function, left[following].arguments)] = following
            except BrokenProcessPool:
                for one in [n for n in (number, *running.values()) if n in left]:
                    deaths[one] += 1
                    if one not in alone:
                        alone.append(one)
                    if deaths[one] >= MOST_DEATHS:
                        alone.remove(one)
                        del left[one]
                        yield one, None, f"its process died {MOST_DEATHS} times (killed, or out of memory)"
            finally:
                pool.shutdown(wait=True, cancel_futures=True)

    return run


def _on_cluster(address: str, gpus: Sequence[str]) -> Callable[[Function, Mapping[int, Task]], _Answers]:
    """A dask scheduler: it gives a dead worker's task to another worker by itself."""
    try:
        from distributed import Client, LocalCluster, as_completed
    except ImportError:
        raise BadInput("a cluster needs the extra `cluster`: pip install 'cuzklab[cluster]'") from None
    if gpus:
        raise BadInput("give each worker of a cluster its GPU where the workers are started (CUDA_VISIBLE_DEVICES)")
    if address != "local" and not re.fullmatch(r"[a-z]+://\S+:[0-9]{1,5}", address):
        raise BadInput(f"cluster {address}: write the scheduler's address, like tcp://host:8786, or local")

    def run(function: Function, todo: Mapping[int, Task]) -> _Answers:
        local = None
        try:
            if address == "local":
                local = LocalCluster(n_workers=_cores(), threads_per_worker=1, dashboard_address=None)
            client = Client(local or address, timeout="5s", set_as_default=False)
        except (OSError, ValueError) as error:
            raise BadInput(f"cluster {address}: cannot be reached ({type(error).__name__}); is it running?") from None
        try:
            # `pure` is off: a result must come from this sweep, not from one that the scheduler remembers.
            futures = {
                client.submit(_call, function, dict(task.arguments), pure=False): number
                for number, task in todo.items()
            }
            for future in as_completed(futures, loop=client.loop):
                number = futures[future]
                if future.status == "finished":
                    value, error = future.result()
                    yield number, value, error
                else:
                    failure = future.exception()
                    text = " ".join(str(failure).split())
                    yield number, None, f"on the cluster: {type(failure).__name__}: {text[:300]}"
                future.release()
        finally:
            client.close()
            if local is not None:
                local.close()

    return run
