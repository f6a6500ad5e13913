"""The multiply paths that tests run on."""

import platform

import pytest

from cuzklab.backends import native


@pytest.fixture(params=[path.name for path in native.FIELD_PATHS])
def field_path(request, monkeypatch):
    """Each multiply path in turn; one that this CPU lacks is skipped, with the reason."""
    path = next(path for path in native.FIELD_PATHS if path.name == request.param)
    if not path.runs_on(native.cpu_features(native.find_compiler())):
        pytest.skip(f"{platform.processor() or platform.machine()} lacks what the path {path.name} needs")
    monkeypatch.setenv("CUZKLAB_FIELD", request.param)
    return request.param
