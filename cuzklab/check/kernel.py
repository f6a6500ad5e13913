"""The search's inner loop over integers, compiled by numba: states are rows of uint16, moves rows of tables.

`compiled` makes these tables and says what they mean. The loop is breadth first. It goes on until something is missing
(a move, a value under another name), which it leaves to Python with the states that wait for it, or until there is no
more room for states, or for so many states that somebody may want to look at the clock.
"""

import numpy as np
from numba import njit

DONE, MISSING, FULL, PAUSE = 0, 1, 2, 3
MOVE, BLOCKED, FAULT = 0, 1, 2
ENDED = 1
MAX_LOCKS = 6  # what an actor holds is one of 64 sets, a bit of a word each


def _compiled(function):
    """Compiled, and kept on the disk where there is room: a read-only installation without a home has none."""
    try:
        return njit(cache=True)(function)
    except RuntimeError:  # numba found no folder that it may write to
        return njit(function)


@_compiled
def _mix(value):
    """The finaliser of SplitMix64 (Steele, Lea and Flood, 2014)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@_compiled
def _share(slot, value):
    """What a slot adds to the hash of a state; nothing while it is 0."""
    if value == 0:
        return np.uint64(0)
    return _mix((np.uint64(slot) << np.uint64(16) | np.uint64(value)) + np.uint64(0x9E3779B97F4A7C15))


@_compiled
def hash_of(row):
    found = np.uint64(0)
    for slot in range(row.shape[0]):
        found += _share(slot, row[slot])
    return found


@_compiled
def row_hash(node, version, values, count):
    found = _mix(np.uint64(node) << np.uint64(20) | np.uint64(version))
    for place in range(count):
        found = _mix(found + np.uint64(values[place]) + np.uint64(1))
    return found


@_compiled
def rehash(places, hashes, count):
    """Put the first states into an empty table again."""
    mask = np.uint64(places.shape[0] - 1)
    for number in range(count):
        place = hashes[number] & mask
        while places[place] >= 0:
            place = (place + np.uint64(1)) & mask
        places[place] = number


@_compiled
def _find_row(state, node, nodes, reads, rows, row_values, row_places, values):
    """The number of the move of a node under the values that its effect reads; −1 if it is not known."""
    first, count, version = nodes[node, 0], nodes[node, 1], nodes[node, 2]
    if version == 0:
        return -1
    for place in range(count):
        values[place] = state[reads[first + place]]
    mask = np.uint64(row_places.shape[0] - 1)
    place = row_hash(node, version, values, count) & mask
    while True:
        row = row_places[place]
        if row < 0:
            return -1
        if rows[row, 0] == node and rows[row, 1] == version:
            start, same = rows[row, 2], True
            for index in range(count):
                if row_values[start + index] != values[index]:
                    same = False
                    break
            if same:
                return row
        place = (place + np.uint64(1)) & mask


@_compiled
def _dormant(state, user, mover, parents):
    """Whether an actor cannot act before the mover moves."""
    while state[user] <= ENDED:
        user = parents[user]
        if user < 0 or user == mover:
            return True
    return False


@_compiled
def _alone(state, slot, row, rows, keys, users, guards, held, actors, parents):
    """Whether a move need not be interleaved with those of others; see `reduction`."""
    for index in range(rows[row, 6], rows[row, 6] + rows[row, 7]):
        key = keys[index]
        if guards[key] & held:
            continue
        bits = users[key]
        for place in range(actors.shape[0]):
            if bits >> np.uint64(place) & np.uint64(1):
                user = actors[place]
                if user != slot and not _dormant(state, user, slot, parents):
                    return False
    return True


@_compiled
def _order(state, groups, families, classes, order):
    """The places of the members of each group, sorted by where they stand; the number of the order, 0 for "as is".

    −1: the class of a node is not known.
    """
    number = 0
    for group in range(groups.shape[0]):
        first, members, width = groups[group, 0], groups[group, 1], groups[group, 2]
        for member in range(members):
            order[member] = member
            for column in range(width):
                slot = families[first + member, column]
                if classes[state[slot]] < 0:
                    return -1
        for last in range(1, members):
            place = last
            while place > 0:
                one, other = order[place - 1], order[place]
                smaller = False
                for column in range(width):
                    left = classes[state[families[first + one, column]]]
                    right = classes[state[families[first + other, column]]]
                    if left != right:
                        smaller = right < left
                        break
                if not smaller:
                    break
                order[place - 1], order[place] = other, one
                place -= 1
        rank = 0  # of the permutation, by its Lehmer code
        for place in range(members):
            less = 0
            for later in range(place + 1, members):
                if order[later] < order[place]:
                    less += 1
            rank = rank * (members - place) + less
        number = number * groups[group, 3] + rank
    return number


@_compiled
def search(
    states, hashes, parents_of, vias, names, places, counts, limit, waiting, redo,
    actors, actor_parents, nodes, reads, rows, row_values, row_places, changes, keys, faults,
    ends, reduced, users, guards, relied, noted, lock_slots, lock_holders,
    groups, families, classes, slot_maps, value_maps, value_firsts, node_maps, is_actor,
):  # fmt: skip
    """Explore states until it can go on no longer; why (`DONE`, `MISSING`, `FULL`, `PAUSE`).

    `counts`: states known, next state, states that wait for something missing, states to take up again, ends, steps.
    `waiting`: the states that wait for moves (−1), or for names after the move of an actor (its slot).
    """
    width = states.shape[1]
    values = np.empty(width, np.uint16)
    found = np.empty(actors.shape[0], np.int64)
    mover = np.empty(actors.shape[0], np.int64)
    holders = np.empty(max(1, lock_slots.shape[0]), np.int64)
    order = np.empty(64, np.int64)
    buffer = np.empty(width, np.uint16)
    renamed = np.empty(width, np.uint16)
    mask = np.uint64(places.shape[0] - 1)
    steps = 0
    while True:
        if counts[0] + 2 * actors.shape[0] >= states.shape[0] or 2 * counts[0] >= places.shape[0]:
            return FULL
        if counts[3] > 0:
            counts[3] -= 1
            number = redo[counts[3]]
        elif counts[2] >= waiting.shape[0]:
            return MISSING
        elif counts[1] < counts[0]:
            if steps >= limit:
                return PAUSE
            steps += 1
            number = counts[1]
            counts[1] += 1
        else:
            return MISSING if counts[2] > 0 else DONE
        state = states[number]
        # --- what everybody can do ---
        missing, movers, only_faults = False, 0, True
        if reduced:
            for lock in range(lock_slots.shape[0]):
                holders[lock] = lock_holders[lock, state[lock_slots[lock]]]
        for place in range(actors.shape[0]):
            slot = actors[place]
            node = state[slot]
            if node <= ENDED:
                continue
            row = _find_row(state, node, nodes, reads, rows, row_values, row_places, values)
            if row < 0:
                missing = True
                break
            if reduced:
                held = 0
                for lock in range(lock_slots.shape[0]):
                    if holders[lock] == slot:
                        held |= 1 << lock
                if not noted[node] >> np.uint64(held) & np.uint64(1):
                    missing = True
                    break
            if rows[row, 3] != BLOCKED:
                found[movers], mover[movers] = row, slot
                movers += 1
                if rows[row, 3] == MOVE:
                    only_faults = False
        if missing:
            waiting[counts[2], 0], waiting[counts[2], 1] = number, -1
            counts[2] += 1
            continue
        # --- which moves are enough ---
        first, last = 0, movers
        if reduced and movers > 1:
            for index in range(movers):
                row, slot = found[index], mover[index]
                if rows[row, 3] != MOVE:
                    continue
                mine = np.uint64(0)
                for lock in range(lock_slots.shape[0]):
                    if holders[lock] == slot:
                        mine |= np.uint64(1) << np.uint64(lock)
                if _alone(state, slot, row, rows, keys, users, guards, mine, actors, actor_parents):
                    for key in range(rows[row, 6], rows[row, 6] + rows[row, 7]):
                        relied[keys[key]] = True
                    first, last = index, index + 1
                    break
        # --- the states that follow ---
        for index in range(first, last):
            row, slot = found[index], mover[index]
            if rows[row, 3] == FAULT:
                continue
            code, via = hashes[number], 0
            for place in range(width):
                buffer[place] = state[place]
            for change in range(rows[row, 4], rows[row, 4] + rows[row, 5]):
                which, value = changes[change, 0], changes[change, 1]
                code = code - _share(which, buffer[which]) + _share(which, value)
                buffer[which] = value
            if groups.shape[0] > 0:
                via = _order(buffer, groups, families, classes, order)
                if via < 0 or slot_maps[via, 0] < 0:
                    missing = True
                elif via > 0:
                    for place in range(width):
                        renamed[place] = 0
                    for place in range(width):
                        value = np.int64(buffer[place])
                        if value == 0:
                            continue
                        if is_actor[place]:
                            other = node_maps[via, value]
                        elif value < value_firsts[place + 1] - value_firsts[place]:
                            other = value_maps[via, value_firsts[place] + value]
                        else:
                            other = -1
                        target = slot_maps[via, place]
                        if other < 0 or target < 0:
                            missing = True
                            break
                        renamed[target] = other
                    if not missing:
                        code = np.uint64(0)
                        for place in range(width):
                            buffer[place] = renamed[place]
                            code += _share(place, renamed[place])
                if missing:
                    break
            spot = code & mask
            new = True
            while places[spot] >= 0:
                other_state = places[spot]
                if hashes[other_state] == code:
                    same = True
                    for place in range(width):
                        if states[other_state, place] != buffer[place]:
                            same = False
                            break
                    if same:
                        new = False
                        break
                spot = (spot + np.uint64(1)) & mask
            if new:
                fresh = counts[0]
                for place in range(width):
                    states[fresh, place] = buffer[place]
                hashes[fresh] = code
                parents_of[fresh] = number
                vias[fresh] = slot
                names[fresh] = via
                places[spot] = fresh
                counts[0] += 1
        if missing:
            # States that were added meanwhile stay: they are reached again when this one is taken up again.
            waiting[counts[2], 0], waiting[counts[2], 1] = number, slot
            counts[2] += 1
            continue
        for index in range(movers):
            if rows[found[index], 3] == FAULT and faults[found[index]] < 0 and (last - first == movers):
                faults[found[index]] = number
        if only_faults:
            if counts[4] >= ends.shape[0]:
                # No room for an end: take the state up again when there is.
                redo[counts[3]] = number
                counts[3] += 1
                return FULL
            ends[counts[4]] = number
            counts[4] += 1
        counts[5] += last - first
