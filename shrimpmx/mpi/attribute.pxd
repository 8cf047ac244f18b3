"""Attributes that programs attach to communicators, datatypes and windows."""

from libc.stdint cimport uint64_t

from shrimpmx.mpi.table cimport mpi_table

cdef struct Attribute:       # stays where it is as long as its object
    int key                  # a handle
    uint64_t turn            # in the order of all that were set; 0: it is deleted
    int width                # of a value of Fortran's: 1 an address's, 3 INTEGER's; 0: it is C's
    void *value              # C's pointer, or Fortran's integer
    Attribute *next

cdef enum KeyKind:           # whose attributes have the key
    OF_COMMUNICATORS
    OF_DATATYPES
    OF_WINDOWS

# All of these without the lock, since they call the user's functions: the class of an error.
# `attributes` are those of the object `handle`.
cdef int attribute_set(Attribute **attributes, int handle, KeyKind kind, int key, void *value,
                       int width) noexcept nogil
# The record of the attribute; NULL: there is none.
cdef int attribute_get(const Attribute *attributes, KeyKind kind, int key,
                       Attribute **found) noexcept nogil
cdef int attribute_delete(Attribute **attributes, int handle, KeyKind kind, int key) noexcept nogil
# To those of a new object, which has none yet.
cdef int attributes_copy(Attribute *attributes, int handle, Attribute **to) noexcept nogil
# The newest first; the object ends if there is no error.
cdef int attributes_delete(Attribute **attributes, int handle) noexcept nogil
cdef void attribute_fill(mpi_table *table) noexcept nogil
