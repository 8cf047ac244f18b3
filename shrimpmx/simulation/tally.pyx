"""What a run lasts until: conditions that a world asks after each turn of a task."""

cdef enum:
    # A look takes as long as a few turns of tasks.
    TURNS_PER_LOOK = 10


cdef class AllOf:
    """Tells whether `holds`, once it does so for good, does so of all things; each is asked about
    until then only.
    """

    cdef object holds
    cdef list left

    def __init__(self, holds, things):
        self.holds, self.left = holds, list(things)

    def __call__(self):
        while self.left and self.holds(self.left[len(self.left) - 1]):
            self.left.pop()
        return not self.left


cdef class Tally:
    """So many that are `left` until all have told it; World.run() asks it without Python. `look` is
    called now and then meanwhile.
    """

    def __init__(self, look):
        self.look = look

    def tell(self) -> None:
        """One more is there."""
        self.left -= 1

    def __call__(self) -> bool:
        """Whether all are."""
        return self.is_full()

    cdef bint is_full(self) except -1:
        self.turns += 1
        if self.turns % TURNS_PER_LOOK == 0:
            self.look()
        return self.left == 0
