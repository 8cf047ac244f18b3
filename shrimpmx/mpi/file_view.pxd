"""Views: which bytes of a file a rank sees, in which representation; positions of pointers."""

from libc.stdint cimport int64_t

from shrimpmx.mpi.datatype cimport Datatype
from shrimpmx.mpi.file cimport File, Representation, View
from shrimpmx.mpi.table cimport mpi_table

cdef struct Piece:           # where a walk through a view is
    int64_t tile             # of which filetype
    int64_t run              # of its runs
    int64_t within           # bytes of the run in front of it

# All bytes of a file, in one piece; False without memory.
cdef bint view_of_bytes(View *view) noexcept nogil
cdef void view_end(View *view) noexcept nogil
# Where the byte is in the file that has so many of the view in front of it.
cdef int64_t view_place(const View *view, int64_t position) noexcept nogil
# Whether bytes behind so many etypes have places in a file, whose numbers end somewhere.
cdef bint view_reaches(const View *view, int64_t etypes, int64_t bytes) noexcept nogil
# How many bytes of an ordered view are in front of a place in the file.
cdef int64_t view_position(const View *view, int64_t place) noexcept nogil
# A walk that begins there; the next piece of at most `most` bytes: its length, and its place.
cdef Piece view_walk(const View *view, int64_t position) noexcept nogil
cdef int64_t view_next(const View *view, Piece *piece, int64_t most, int64_t *place) noexcept nogil
# Bytes of an element of a type in a file; -1: a function of the program's failed.
cdef int64_t bytes_in_file(const Representation *representation,
                           const Datatype *type) noexcept nogil
# A position of MPI_File_seek, in etypes, from the one that the pointer has; -1: there is none.
cdef int64_t sought(const File *file, int64_t offset, int whence, int64_t current) noexcept nogil
cdef void file_view_fill(mpi_table *table) noexcept nogil
