"""What tests of the prover share with those of the backends."""

from tests.backends.conftest import field_path

__all__ = ["field_path"]
