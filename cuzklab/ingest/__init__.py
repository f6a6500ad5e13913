"""Files that others wrote become runs: captures of Nsight Systems, and whatever else has an importer.

`formats/` holds one module a format, found without being listed anywhere; `registry` finds them and imports a file;
`model` is what an importer returns. `nsys/` reads Nsight Systems' exports, `engine_log/` logs of proving engines,
`chrome/` trace events in JSON, `memory_snapshot/` pickles of PyTorch. `files` reads within bounds, `rows` keeps
columns, `privacy` keeps secrets out of every run. `capturing/` takes captures and joins each with the run it is of.
`README.md` tells what is read, how ranges must be named to become locks, and where our figures differ from NVIDIA's.
"""

from cuzklab.ingest.model import Imported, Importer, Options
from cuzklab.ingest.registry import import_file, importers

__all__ = ["Imported", "Importer", "Options", "import_file", "importers"]
