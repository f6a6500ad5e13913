"""CuPy's memory hook as a source of allocations.

CuPy asks hooks of the calling thread only, so each thread that allocates enters a hook of its own:

    with hook(tracer):
        array = cupy.empty(1 << 20)
"""

from typing import Any

from cuzklab.trace.recorders.vram import VramTracer


def hook(tracer: VramTracer) -> Any:
    """A `cupy.cuda.MemoryHook` that tells a tracer of everything the calling thread takes from CuPy's pool.

    Sizes are those that the pool rounds to. What the pool itself takes from the device makes its segments, in which
    the largest free block is looked for.

    Raises
    ------
    ImportError
        CuPy is not installed.
    """
    import cupy

    class Hook(cupy.cuda.MemoryHook):
        name = "cuzklab"

        def alloc_postprocess(self, *, device_id: int, mem_size: int, mem_ptr: int, **more: Any) -> None:
            if mem_ptr:
                tracer.pool_took(mem_ptr, mem_size, device=device_id)

        def malloc_postprocess(self, *, device_id: int, mem_size: int, mem_ptr: int, **more: Any) -> None:
            if mem_ptr:
                tracer.allocated(mem_ptr, mem_size, device=device_id)
            elif mem_size:
                # Before CuPy gives a request up, it returns the segments that nothing uses to the device.
                tracer.pool_trimmed(device=device_id)
                tracer.failed(mem_size, device=device_id)

        def free_preprocess(self, *, device_id: int, mem_ptr: int, **more: Any) -> None:
            tracer.freed(mem_ptr, device=device_id)

    return Hook()
