"""SQL over stored runs: every table of the schema, with the run's name in front."""

from collections.abc import Sequence

import pandas as pd
import pyarrow as pa

from cuzklab.trace.schema import TABLES, arrow_schema
from cuzklab.trace.store import Run, RunError, read_table


class QueryError(ValueError):
    """The query cannot be answered. The message is one line."""


def query(runs: Sequence[Run], sql: str) -> pd.DataFrame:
    """Answer a query over the tables of some runs.

    The tables are those of `trace.schema`, each with a first column `run`; table `runs` has a row for each run with
    its origin, policy, outcome and time of creation. The query sees copies in memory and can reach no file.

    Raises
    ------
    QueryError
        DuckDB refuses the query; the message is DuckDB's first line.
    """
    import duckdb

    connection = duckdb.connect(":memory:")
    described = pa.table(
        {
            "run": [run.name for run in runs],
            "origin": [run.info.origin for run in runs],
            "policy": [run.info.policy for run in runs],
            "outcome": [run.info.outcome for run in runs],
            "created": [run.info.created for run in runs],
        },
        schema=pa.schema([(name, pa.string()) for name in ("run", "origin", "policy", "outcome", "created")]),
    )
    connection.register("runs", described)
    for name in TABLES:
        connection.register(name, _all_rows(runs, name))
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    try:
        result = connection.execute(sql)
        if result is None:
            raise QueryError("query: is empty; give a SELECT")
        return result.df()
    except duckdb.Error as error:
        raise QueryError(f"query: {str(error).splitlines()[0]}") from None
    finally:
        connection.close()


def _all_rows(runs: Sequence[Run], name: str) -> pa.Table:
    schema = arrow_schema(name)
    parts = [_with_run("", schema.empty_table())]
    for run in runs:
        file = run.path / f"{name}.parquet"
        if file.exists():
            try:
                parts.append(_with_run(run.name, read_table(file, name)))
            except (pa.ArrowException, OSError, ValueError) as error:
                raise RunError(f"{file}: not a readable table ({error})") from error
    return pa.concat_tables(parts)


def _with_run(run: str, table: pa.Table) -> pa.Table:
    return table.add_column(0, "run", pa.array([run] * len(table), pa.string()))
