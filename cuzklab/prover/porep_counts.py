"""The counts of a circuit of any size that has the shape of a 32 GiB PoRep partition.

What is kept, in proportion to the number of constraints: inputs, auxiliary wires, nonzeros of A, B and C, how many
wires A and B touch (their densities), and the share of witness values that are neither 0 nor 1. Counts of the model:
130,278,869 constraints, 328 inputs (the constant one among them), 130,169,893 auxiliary wires, A density 129,753,292,
B density 33,112,281, nonzeros 309,405,051, 130,327,340 and 282,656,500.

The rows are those of SHA-256 circuits, which make up nearly all of that partition, and these counts follow:

* boolean rows, (1 − w) · w = 0, of the wires that B touches;
* "derived" bits, one row each: XOR 2x · y = x + y − z, AND x · y = z, majority (2xy − x − y) · w = xy − z, and choice
  (x − y) · w = z − y;
* few long rows, Σ 2^e · bit = Σ 2^i · result bit, each several additions at once; they define the result bits;
* rows with field elements, (s + c) · s' = s'': the share of a permutation such as Poseidon.

The share of significant values is our inference, not a published count: 5 % of the auxiliary wires and 5 % of those
in B. That makes 1.7 million points of B's tail, or 25 s of one thread's G2 MSM at 15 µs a point, as was published; and
tails of L, A and B in G1 that cost a quarter of an MSM over H. A count of the partition's SHA-256 compressions (5,040
of about 25,000 constraints) leaves 2 to 5 %. In any case the split MSM pays: 95 % of the scalars are 0 or 1.
"""

from dataclasses import dataclass

from cuzklab.errors import BadInput

POREP_CONSTRAINTS = 130_278_869
POREP_INPUTS = 328
POREP_AUX = 130_169_893
POREP_A_AUX_DENSITY = 129_753_292
POREP_B_AUX_DENSITY = 33_112_281
POREP_A_NONZEROS = 309_405_051
POREP_B_NONZEROS = 130_327_340
POREP_C_NONZEROS = 282_656_500
POREP_LOG2_DOMAIN = 27

SIGNIFICANT_PERCENT = 5
MINIMUM_CONSTRAINTS = 200

# A long row's result is a number of this many bits, as in a circuit that packs additions up to the field's capacity.
_RESULT_BITS = 224


@dataclass(frozen=True)
class PorepCounts:
    """What a PoRep-shaped circuit of a size consists of.

    Attributes
    ----------
    constraints, inputs, aux : int
        `inputs` counts the constant one; wires = inputs + aux.
    a_nonzeros, b_nonzeros, c_nonzeros : int
    a_aux_density, b_aux_density : int
        Auxiliary wires with a nonzero column in A, in B.
    significant, significant_in_b : int
        Auxiliary wires whose value is neither 0 nor 1, and those of them in B.
    primary, results : int
        Boolean wires that are free, and those that long rows define.
    xors, triples : int
        Derived bits: XORs; and ANDs, majorities and choices (each `triples`).
    long_rows, long_terms : int
        Rows of additions, and their terms in A together.
    """

    constraints: int
    inputs: int
    aux: int
    a_nonzeros: int
    b_nonzeros: int
    c_nonzeros: int
    a_aux_density: int
    b_aux_density: int
    significant: int
    significant_in_b: int
    primary: int
    results: int
    xors: int
    triples: int
    long_rows: int
    long_terms: int

    @property
    def derived(self) -> int:
        """Derived bits."""
        return self.xors + 3 * self.triples

    @property
    def derived_not_in_a(self) -> int:
        """XORs that no row of A reads. The last field elements, one for each public input, are not in A either."""
        return self.aux - self.a_aux_density - (self.inputs - 1)


def porep_constraints(log2_domain: int) -> int:
    """Constraints that fill a domain of 2^log2_domain rows as far as the model's fill its 2^27: 97.07 %."""
    return _scale(POREP_CONSTRAINTS, 1 << log2_domain, 1 << POREP_LOG2_DOMAIN)


def porep_counts(constraints: int) -> PorepCounts:
    """The exact counts of a PoRep-shaped circuit: the model's, scaled and rounded, and what follows from them.

    Raises
    ------
    BadInput
        Fewer than `MINIMUM_CONSTRAINTS`: the shape cannot be kept.
    """
    if constraints < MINIMUM_CONSTRAINTS:
        raise BadInput(
            f"PoRep-shaped circuit: {constraints} constraints cannot keep the shape; "
            f"ask for at least {MINIMUM_CONSTRAINTS}"
        )

    def scaled(count: int) -> int:
        return _scale(count, constraints, POREP_CONSTRAINTS)

    inputs = max(2, scaled(POREP_INPUTS))
    public = inputs - 1
    aux = min(scaled(POREP_AUX), constraints - 2)
    a_nonzeros, b_nonzeros, c_nonzeros = map(scaled, (POREP_A_NONZEROS, POREP_B_NONZEROS, POREP_C_NONZEROS))
    b_aux_density = scaled(POREP_B_AUX_DENSITY)
    significant = max(2 * inputs, _scale(SIGNIFICANT_PERCENT, aux, 100))
    significant_in_b = max(1, _scale(SIGNIFICANT_PERCENT, b_aux_density, 100))

    # Every auxiliary wire has a row of its own that defines it (a result bit: that makes it boolean); the rest is long.
    long_rows = constraints - aux
    boolean = b_aux_density - significant_in_b
    derived = aux - boolean - significant
    results = min(_RESULT_BITS * long_rows, boolean * 4 // 5)
    # Nonzeros of C: an XOR has 3, of a triple the AND has 1 and the others 2. Results give way so that this comes out.
    results += (c_nonzeros - significant - results - 3 * derived) % 4
    triples = (3 * derived - (c_nonzeros - significant - results)) // 4
    xors = derived - 3 * triples
    long_terms = a_nonzeros - 2 * significant - 2 * boolean - xors - 6 * triples
    return PorepCounts(
        constraints=constraints,
        inputs=inputs,
        aux=aux,
        a_nonzeros=a_nonzeros,
        b_nonzeros=max(b_nonzeros, constraints),
        c_nonzeros=c_nonzeros,
        # The last field elements, one for each public input, are in no row of A.
        a_aux_density=min(scaled(POREP_A_AUX_DENSITY), aux - public),
        b_aux_density=b_aux_density,
        significant=significant,
        significant_in_b=significant_in_b,
        primary=boolean - results,
        results=results,
        xors=xors,
        triples=triples,
        long_rows=long_rows,
        long_terms=long_terms,
    )


def _scale(count: int, numerator: int, denominator: int) -> int:
    """count · numerator / denominator, rounded to the nearest integer, halves up."""
    return (2 * count * numerator + denominator) // (2 * denominator)
