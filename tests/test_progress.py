"""What a long job tells a log: often enough that nobody thinks it dead, and not a line for every task."""

from cuzklab.progress import seldom


class Clock:
    """Time that passes when it is told to."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def told_of(tasks: int, seconds_each: float, *, every_s: float = 10.0) -> list[tuple[float, str]]:
    """When a job of equal tasks is told of, and its words."""
    clock, told = Clock(), []
    report = seldom(lambda share, words="": told.append((clock.now_s, words)), every_s, clock)
    for done in range(tasks + 1):
        report(done / tasks, f"{done} of {tasks}")
        clock.now_s += seconds_each
    return told


def test_a_quick_job_is_told_of_by_tenths():
    assert [words for _, words in told_of(1000, 0.001)] == [f"{n * 100} of 1000" for n in range(11)]


def test_a_slow_job_is_told_of_every_ten_seconds_too():
    told = told_of(2000, 0.5)  # a tenth takes 100 s
    assert [at_s for at_s, _ in told] == [10.0 * n for n in range(101)]
    assert told[:2] == [(0.0, "0 of 2000"), (10.0, "20 of 2000")]


def test_tasks_that_are_slow_themselves_are_told_of_one_by_one():
    assert [words for _, words in told_of(30, 60.0)] == [f"{n} of 30" for n in range(31)]


def test_a_line_begins_the_wait_anew():
    # A tenth every 25 s: after its line the next ones come 10 s and 20 s later.
    assert [at_s for at_s, _ in told_of(50, 5.0)] == [0, 10, 20, 25, 35, 45, 50, 60, 70, 75, 85, 95, 100, 110, 120,
                                                     125, 135, 145, 150, 160, 170, 175, 185, 195, 200, 210, 220, 225,
                                                     235, 245, 250]  # fmt: skip
