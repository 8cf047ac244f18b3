"""An interrupt raised where Python drops exceptions (a finalizer, a weak reference) comes again.

Compiled, because a hook in Python would take the signal itself and drop the interrupt once more.
"""

cdef extern from "Python.h":
    int PyErr_SetInterruptEx(int signum)


def raising_again(first, otherwise):
    """A `sys.unraisablehook` that signals the dropped interrupt of `first`, a FirstInterrupt, again
    and leaves the others, and every other exception, to the hook `otherwise`.
    """
    def hook(unraisable):
        error = unraisable.exc_value
        if isinstance(error, KeyboardInterrupt):
            first.came = False
        if error is not None and error is first.raised:
            PyErr_SetInterruptEx(error.number)
        else:
            otherwise(unraisable)
    return hook
