"""Sampled stacks of stages: by thread, put together by stage, without paths of the machine."""

import json
import threading
import time

from cuzklab.trace.recorders.profile import PROFILE_FILE, StackProfile


def busy(seconds):
    """Work for some seconds of the thread's processor time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(100))


def functions(session):
    return {frame.split("\x00")[0] for stack, _ in session["frame_records"] for frame in stack}


def test_stages_of_all_threads_are_sampled_and_put_together(recording, tmp_path):
    profile = StackProfile(recording=recording)

    def work():
        with profile.of("synthesis"):
            busy(0.05)
        with profile.of("prep_msm"):
            busy(0.02)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    run = recording.write(tmp_path / "run")
    stored = json.loads((run.path / PROFILE_FILE).read_text())
    assert set(stored) == {"synthesis", "prep_msm"}
    assert functions(stored["synthesis"]) >= {"work", "busy"}
    # Stacks begin where the stage does, on every thread.
    assert {stack[0].split("\x00")[0] for stack, _ in stored["synthesis"]["frame_records"]} == {"work"}
    assert sum(duration for _, duration in stored["synthesis"]["frame_records"]) > 0.09


def test_a_stage_inside_another_is_part_of_it(recording):
    profile = StackProfile(recording=recording)
    with profile.of("outer"), profile.of("inner"):
        busy(0.02)
    assert set(profile.sessions) == {"outer"}


def test_nothing_tells_of_the_machine(recording, tmp_path):
    profile = StackProfile(recording=recording)
    with profile.of("stage"):
        json.loads(json.dumps(list(range(200_000))))
        busy(0.02)
    run = recording.write(tmp_path / "run")
    for _, session in json.loads((run.path / PROFILE_FILE).read_text()).items():
        assert (session["sys_path"], session["sys_prefixes"], session["target_description"]) == ([], [], "")
        for stack, _ in session["frame_records"]:
            assert not any(frame.split("\x00")[1].startswith("/") for frame in stack)


def test_without_stages_nothing_is_stored(recording, tmp_path):
    StackProfile(recording=recording)
    assert not (recording.write(tmp_path / "run").path / PROFILE_FILE).exists()
