"""SQL over runs sees their rows and nothing else."""

import pytest

from cuzklab.trace import Recorder, RunInfo, Span, write_run
from cuzklab.trace.query import QueryError, query


@pytest.fixture
def stored(tmp_path):
    runs = []
    for name, ends in (("first", (10, 20)), ("second", (5,))):
        recorder = Recorder()
        for end in ends:
            recorder.add(Span(0, end, "ntt_h", "gpu"))
        runs.append(write_run(tmp_path / name, RunInfo("live", name, policy="phase9"), recorder))
    return runs


def test_rows_of_all_runs_carry_their_run(stored):
    answer = query(stored, 'SELECT run, sum("end" - start) AS ns FROM spans GROUP BY run ORDER BY run')
    assert answer.to_dict("records") == [{"run": "first", "ns": 30}, {"run": "second", "ns": 5}]
    assert query(stored, "SELECT count(*) AS n FROM vram").n[0] == 0
    assert set(query(stored, "SELECT policy FROM runs").policy) == {"phase9"}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM nothing",
        "SELEC",
        "SELECT * FROM read_csv('/etc/passwd')",
        "COPY (SELECT 1) TO 'out.csv'",
        "ATTACH 'x.db'",
        "SET enable_external_access = true",
    ],
)
def test_a_query_reaches_no_file_and_fails_on_one_line(stored, sql, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(QueryError) as error:
        query(stored, sql)
    assert "\n" not in str(error.value)
    assert {path.name for path in tmp_path.iterdir()} == {"first", "second"}
