"""Attributes that programs attach to communicators, datatypes and windows."""

from libc.stdint cimport uint64_t

from shrimpmx.mpi.table cimport mpi_table

cdef struct Attribute:       # stays where it is as long as its object
    int key                  # a handle
    uint64_t turn            # in the order of all that were set; 0: it is deleted
    void *value
    Attribute *next

cdef enum KeyKind:           # whose attributes have the key
    OF_COMMUNICATORS
    OF_DATATYPES
    OF_WINDOWS

# All of these without the lock, since they call the user's functions: the class of an error.
# `attributes` are those of the object `handle`.
cdef int attribute_set(Attribute **attributes, int handle, KeyKind kind, int key,
                       void *value) noexcept nogil
# `flag`: whether there is one.
cdef int attribute_get(const Attribute *attributes, KeyKind kind, int key, void **value,
                       int *flag) noexcept nogil
cdef int attribute_delete(Attribute **attributes, int handle, KeyKind kind, int key) noexcept nogil
# To those of a new object, which has none yet.
cdef int attributes_copy(const Attribute *attributes, int handle, Attribute **to) noexcept nogil
# The newest first; the object ends if there is no error.
cdef int attributes_delete(Attribute **attributes, int handle) noexcept nogil
cdef void attribute_fill(mpi_table *table) noexcept nogil
