"""One rule a file: a generator of `Finding`s from a `Case`, decorated with `finding`. A new file is a new rule."""
