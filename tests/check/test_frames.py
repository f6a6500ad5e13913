"""When two suspended generators are taken to be at the same point."""

from cuzklab.check.frames import frozen_state


def at(function, *sent):
    generator = function()
    next(generator)
    for value in sent:
        generator.send(value)
    return frozen_state(generator)


def test_what_is_forgotten_does_not_count():
    def forget():
        enough = (yield) > 3
        yield enough

    assert at(forget, 4) == at(forget, 5) != at(forget, 3)


def test_what_is_kept_counts():
    def keep():
        value = yield
        yield value

    assert at(keep, 4) != at(keep, 5)
    assert at(keep, 1) != at(keep, True)


def test_where_it_stands_counts():
    def steps():
        yield
        yield

    assert at(steps) != at(steps, None)


def test_which_variables_are_bound_counts():
    def bind():
        if (yield):
            left = 1
        else:
            right = 1
        yield
        return left, right

    assert at(bind, True) != at(bind, False)


def test_iterators_on_the_stack_count():
    def rounds():
        for _ in (0, 0, 0):
            yield

    def pairs():
        for _ in zip([0, 0], range(2)):
            yield

    assert at(rounds) != at(rounds, None)
    assert at(rounds, None) == at(rounds, None)
    assert at(pairs) != at(pairs, None)


def test_inner_generators_count():
    def inner():
        yield
        yield

    def outer():
        yield from inner()

    def driven():
        running = inner()
        for _ in (0, 0):
            yield next(running)

    assert at(outer) != at(outer, None)
    assert at(driven) != at(driven, None) and at(driven, None) == at(driven, None)


def test_closures_and_shared_lists_count():
    def closing():
        value = yield

        def look():
            return value

        look()
        yield

    def sharing():
        one = []
        other = one if (yield) else []
        yield
        return one, other

    assert at(closing, 4) != at(closing, 5)
    assert at(sharing, True) != at(sharing, False)


def test_what_cannot_be_judged_is_kept_apart():
    def opaque():
        thing = object()
        yield
        return thing

    assert at(opaque) is None
