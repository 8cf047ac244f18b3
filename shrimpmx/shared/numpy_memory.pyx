"""Lets numpy take the data of its arrays from a rank's heap (numpy enhancement proposal 49)."""

from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from cpython.ref cimport PyObject, Py_INCREF, Py_XDECREF
from libc.stdint cimport uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset, strncpy

from shrimpmx.shared.heap cimport Heap

from shrimpmx.shared.heap import keep_apart

cdef extern from "<numpy/arrayobject.h>":
    ctypedef struct PyDataMemAllocator:
        void *ctx
        void *(*malloc)(void *ctx, size_t size) noexcept nogil
        void *(*calloc)(void *ctx, size_t count, size_t size) noexcept nogil
        void *(*realloc)(void *ctx, void *data, size_t size) noexcept nogil
        void (*free)(void *ctx, void *data, size_t size) noexcept nogil
    ctypedef struct PyDataMem_Handler:
        char name[127]
        uint8_t version
        PyDataMemAllocator allocator
    PyObject *PyDataMem_SetHandler(PyObject *handler) except NULL
    int import_array "_import_array"() except -1

import_array()

# The heap is borrowed in these: the handler that they belong to keeps it. Where it has no room,
# or after a fork, they do without: such an array is as good, only slower to send.


cdef void *heap_malloc(void *context, size_t size) noexcept nogil:
    cdef void *data = (<Heap>context).take(size)
    if data == NULL:
        (<Heap>context).count_outside()
        data = malloc(size if size else 1)
    return data


cdef void *heap_calloc(void *context, size_t count, size_t size) noexcept nogil:
    cdef void *data = NULL
    if size == 0 or count <= <size_t>-1 // size:
        data = (<Heap>context).take(count * size)
    if data == NULL:
        (<Heap>context).count_outside()
        return calloc(count if count else 1, size if size else 1)
    memset(data, 0, count * size)
    return data


cdef void *heap_realloc(void *context, void *data, size_t size) noexcept nogil:
    cdef void *moved
    if data == NULL:
        return heap_malloc(context, size)
    if not (<Heap>context).contains(data, 1):
        return realloc(data, size if size else 1)
    if (<Heap>context).resize(<uint8_t *>data, size):
        return data
    moved = heap_malloc(context, size)
    if moved != NULL:
        memcpy(moved, data,
               min(<uint64_t>size, (<Heap>context).length_of(<uint8_t *>data)))
        (<Heap>context).give(<uint8_t *>data)
    return moved


cdef void heap_free(void *context, void *data, size_t size) noexcept nogil:
    if data == NULL:
        return
    if (<Heap>context).contains(data, 1):
        (<Heap>context).give(<uint8_t *>data)
    else:
        free(data)


cdef void destroy(object capsule) noexcept:
    """The last array that the handler made is gone, and the handler unused."""
    cdef PyDataMem_Handler *handler = <PyDataMem_Handler *>PyCapsule_GetPointer(
        capsule, "mem_handler")
    Py_XDECREF(<PyObject *>handler.allocator.ctx)
    free(handler)


cdef object make_handler(Heap heap):
    cdef PyDataMem_Handler *handler = <PyDataMem_Handler *>calloc(1, sizeof(PyDataMem_Handler))
    if handler == NULL:
        raise MemoryError("not enough memory for numpy's memory handler")
    strncpy(handler.name, "shrimpmx_heap", sizeof(handler.name) - 1)
    handler.version = 1
    handler.allocator.ctx = <void *>heap
    handler.allocator.malloc = heap_malloc
    handler.allocator.calloc = heap_calloc
    handler.allocator.realloc = heap_realloc
    handler.allocator.free = heap_free
    Py_INCREF(heap)
    return PyCapsule_New(handler, "mem_handler", destroy)


cdef object set_handler(object handler):
    """Use `handler` in this thread from now on; returns what was used before."""
    cdef PyObject *before = PyDataMem_SetHandler(<PyObject *>handler)
    result = <object>before
    Py_XDECREF(before)
    return result


cdef class NumpyMemory:
    """While entered, the arrays that numpy makes in this thread lie in the heap.

    Each array remembers its handler, so that arrays may outlive the context, and keeps the
    heap and with it the segment's mapping. What has no room there lies in ordinary memory
    and is counted: `heap.outside`.
    """

    cdef readonly Heap heap
    cdef object handler
    cdef list before

    def __cinit__(self, Heap heap not None):
        self.heap = heap
        self.handler = make_handler(heap)
        self.before = []

    def __enter__(self):
        keep_apart(self.heap)
        self.before.append(set_handler(self.handler))
        return self.heap

    def __exit__(self, *details):
        set_handler(self.before.pop())
