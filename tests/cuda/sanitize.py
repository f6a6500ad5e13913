"""Every kernel once, small, for `compute-sanitizer --tool memcheck|racecheck python tests/cuda/sanitize.py`."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from cuzklab.backends import cuda, host
from cuzklab.backends.cuda import msm, multiples
from cuzklab.backends.limbs import ints_to_limbs


def main() -> None:
    source = np.random.default_rng(1)
    values = source.integers(0, 1 << 60, (1 << 13, 4), dtype=np.uint64)
    for log_n in (0, 1, 3, 5, 8, 10, 13):
        x, wanted = values[: 1 << log_n].copy(), values[: 1 << log_n].copy()
        cuda.ntt(x, coset=7)
        host.ntt(wanted, coset=7)
        assert (x == wanted).all()
    for n in (1, 700):
        scalars = values[:n].copy()
        scalars[: n // 3] = ints_to_limbs([1], 4)  # a long bucket
        bitmap = source.integers(0, 1 << 63, -(-n // 64), dtype=np.uint64)
        for group, make in (("g1", host.fixed_base_g1), ("g2", host.fixed_base_g2)):
            points = make(values[:n])
            msm._BATCH_POINTS = msm._STREAMED_POINTS = multiples._BATCH_POINTS = multiples._SLICE_POINTS = 512
            for name, second in (("msm", scalars), ("masked_sum", bitmap)):
                got = getattr(cuda, f"{name}_{group}")(points, second)
                assert (got == getattr(host, f"{name}_{group}")(points, second)).all()
            for options in ({"bits": 9}, {"bits": 10, "multiples": 4}):
                base = cuda.store_multiples(points, **options)
                wanted = getattr(host, f"msm_{group}")(points, scalars)
                assert (cuda.msm_of_multiples(base, scalars) == wanted).all()
    assert (cuda.fp_mul(values[:99, [0, 1, 2, 3, 0, 1]].copy(), values[:99, [0, 1, 2, 3, 0, 1]].copy()) > 0).any()
    print("done")


if __name__ == "__main__":
    main()
