"""Reports: runs in, a page out that an engineer can send to a colleague.

`write` is the whole way: run a notebook, write its page, take its verdict; `many` does so for all of them, or for a
grid, with an `overview` page. `notebook` runs notebooks (parameters checked, deadline, what failed is kept); `subjects`
checks parameters that name stored runs; `masthead` says what a page is and where its runs ran; `html` and `markdown`
make one self-contained page of an executed notebook, with what lies in `page/`. `postmortem` holds what a report is
made from and writes its record; `show` has one function a section, over `figures/`, `schedule`, `tables` and `display`;
`theme` the colours.
"""

from cuzklab.report.notebook import NotebookFailed
from cuzklab.report.write import Report, notebooks, write_report

__all__ = ["NotebookFailed", "Report", "notebooks", "write_report"]
