"""The entry points of the compiled CPU library: what each returns and takes, as `kernels/host/` declares them.

A row is a name, the type of its result, and those of its arguments. `_GROUP` is there for G1 and G2, `_FIELD` for Fp
and Fr; their names begin with that.
"""

import ctypes

_POINTER, _U32, _U64 = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64
_GROUP = {
    "msm_scratch_bytes": (_U64, _U64, _U32),
    "msm_windows": (_U32, _U32),
    "msm_window": (None, _POINTER, _POINTER, _U32, _U32, _U32, _POINTER, _POINTER),
    "msm_combine": (None, _POINTER, _U32, _U32, _POINTER),
    "sum_of_shifted": (None, _POINTER, _POINTER, _U32, _POINTER),
    "sum_scratch_bytes": (_U64,),
    "masked_sum": (None, _POINTER, _POINTER, _U64, _U64, _POINTER, _POINTER),
    "sum": (None, _POINTER, _U64, _POINTER),
    "fixed_base_entries": (_U64, _U32),
    "fixed_base_entry_bytes": (_U64,),
    "fixed_base_powers": (None, _POINTER, _U32, _POINTER),
    "fixed_base_table": (None, _POINTER, _U32, _POINTER, _POINTER),
    "fixed_base": (None, _POINTER, _U32, _POINTER, _U64, _POINTER, _POINTER),
    "add": (None, _POINTER, _POINTER, _POINTER),
    "neg": (None, _POINTER, _POINTER),
    "mul": (None, _POINTER, _POINTER, _U32, _POINTER),
    "on_curve": (ctypes.c_int64, _POINTER, _U64, _POINTER),
    "in_subgroup": (ctypes.c_int64, _POINTER, _U64, _POINTER, _POINTER),
    "lockstep_scratch_bytes": (_U64,),
    "multiply_each": (None, _POINTER, _POINTER, _U64, _POINTER, _POINTER),
    "decode": (ctypes.c_int64, _POINTER, _POINTER, _U64, _POINTER, _POINTER),
    "encode": (None, _POINTER, _U64, _POINTER),
    "gather": (None, _POINTER, _POINTER, _U64, _POINTER),
}
_FIELD = {
    "add": (None, _POINTER, _U64, _POINTER, _U64, _POINTER, _U64),
    "sub": (None, _POINTER, _U64, _POINTER, _U64, _POINTER, _U64),
    "mul": (None, _POINTER, _U64, _POINTER, _U64, _POINTER, _U64),
    "to_montgomery": (None, _POINTER, _POINTER, _U64),
    "from_montgomery": (None, _POINTER, _POINTER, _U64),
    "inverse": (None, _POINTER, _POINTER, _U64),
    "first_not_canonical": (ctypes.c_int64, _POINTER, _U64),
    "repeat_products": (None, _POINTER, _U64),
}
_OTHERS = {
    "fr_powers": (None, _POINTER, _POINTER, _U64),
    "fr_sparse_product": (ctypes.c_int64, _POINTER, _POINTER, _POINTER, _POINTER, _U64, _U64, _U64, _POINTER),
    "fr_coded_product": (
        ctypes.c_int64,
        _POINTER,
        _POINTER,
        _POINTER,
        _POINTER,
        _POINTER,
        _U64,
        _POINTER,
        _U64,
        _U64,
        _U64,
        _POINTER,
    ),
    "fr_check_records": (ctypes.c_int64, _POINTER, _U64, _U32, _U32, _POINTER),
    "fr_record_products": (ctypes.c_int64, _POINTER, _U64, _U64, _POINTER, _U32, _U32, _POINTER, _POINTER),
    "fr_classify": (None, _POINTER, _U64, _POINTER, _POINTER, _POINTER),
    "split_query": (_U64, _POINTER, _POINTER, _POINTER, _U64, _POINTER, _POINTER, _POINTER),
    "count_bits": (_U64, _POINTER, _U64),
    "gather_rows": (ctypes.c_int64, _POINTER, _U64, _U64, _POINTER, _U64, _POINTER),
    "ntt_scratch_bytes": (_U64, _U32, _U32),
    "ntt_columns": (None, _POINTER, _POINTER, _U32, _U32, _U64, _U64, *[_POINTER] * 5),
    "ntt_rows": (None, _POINTER, _POINTER, _U32, _U32, _U64, _U64, *[_POINTER] * 3),
    "ntt_quotient": (None, _POINTER, _POINTER, _POINTER, _U64, _U64, _POINTER),
}


def declare(library: ctypes.CDLL) -> None:
    """Tell ctypes the types of every entry point: without them it would cut addresses to 32 bits."""
    entries = dict(_OTHERS)
    for prefixes, table in ((("g1", "g2"), _GROUP), (("fp", "fr"), _FIELD)):
        entries.update({f"{prefix}_{name}": types for prefix in prefixes for name, types in table.items()})
    for name, (result, *arguments) in entries.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
