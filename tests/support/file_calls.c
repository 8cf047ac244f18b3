/* What a program can do with files; its argument is the name of one. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCKS = 40, INTS = 3, ROOM = BLOCKS * INTS };
static int rank, size, wrong;
static const char *name;
#define CHECK(it) do { if (!(it)) { wrong++; fprintf(stderr, "%d: %s\n", rank, #it); } } while (0)

static int class_of(int code) {
    int class;
    MPI_Error_class(code, &class);
    return class;
}

static int count_of(MPI_Status *status) {
    int count;
    MPI_Get_count(status, MPI_INT, &count);
    return count;
}

static MPI_File opened(int amode, MPI_Info info) {
    MPI_File file;
    CHECK(!MPI_File_open(MPI_COMM_WORLD, name, amode, info, &file));
    MPI_File_set_errhandler(file, MPI_ERRORS_ARE_FATAL);
    return file;
}

/* Blocks of the ranks in turn, from memory with gaps, by few windows or many. */
static void mixed(const char *how, const char *window) {
    MPI_Info info;
    MPI_Datatype blocks, theirs, gaps;
    MPI_Status status;
    MPI_Offset bytes;
    int data[2 * ROOM], back[2 * ROOM], whole[ROOM];
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_write", how);
    MPI_Info_set(info, "romio_cb_read", how);
    MPI_Info_set(info, "cb_buffer_size", window);
    MPI_File file = opened(MPI_MODE_CREATE | MPI_MODE_RDWR, info);
    MPI_Info_free(&info);
    MPI_Type_vector(BLOCKS, INTS, INTS * size, MPI_INT, &blocks);
    MPI_Type_create_resized(blocks, 0, 4 * ROOM * size, &theirs);
    MPI_Type_vector(ROOM, 1, 2, MPI_INT, &gaps);
    MPI_Type_commit(&theirs);
    MPI_Type_commit(&gaps);
    MPI_File_set_size(file, 0);
    MPI_File_set_view(file, 12 + 4 * INTS * rank, MPI_INT, theirs, "native", MPI_INFO_NULL);
    for (int at = 0; at < 2 * ROOM; at++)
        data[at] = 1000 * rank + at;
    MPI_File_write_all(file, data, 1, gaps, &status);
    CHECK(count_of(&status) == ROOM);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_get_size(file, &bytes);
    CHECK(bytes == 12 + 4 * ROOM * size);
    memset(back, 0, sizeof back);
    MPI_File_read_at_all(file, 0, back, 1, gaps, &status);
    CHECK(count_of(&status) == ROOM);
    for (int at = 0; at < ROOM; at++)
        CHECK(back[2 * at] == 1000 * rank + 2 * at && (at == ROOM - 1 || back[2 * at + 1] == 0));
    /* Behind the end there is nothing. */
    MPI_File_read_at_all(file, ROOM - 2, back, 10, MPI_INT, &status);
    CHECK(count_of(&status) == 2 && back[1] == 1000 * rank + 2 * (ROOM - 1));
    MPI_File_set_view(file, 12, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    int other = (rank + 1) % size;
    MPI_File_read_at(file, INTS * other, whole, INTS, MPI_INT, &status);
    CHECK(whole[0] == 1000 * other && whole[2] == 1000 * other + 4);
    MPI_Type_free(&blocks);
    MPI_Type_free(&theirs);
    MPI_Type_free(&gaps);
    MPI_File_close(&file);
    CHECK(file == MPI_FILE_NULL);
}

static void pointers(void) {
    MPI_Offset place;
    MPI_Status status;
    MPI_Request requests[2];
    int one = rank, seen = -1, *all = calloc(size, sizeof *all), more[2] = {rank, rank};
    MPI_File file = opened(MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL);
    MPI_File_set_size(file, 0);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_write_ordered(file, more, rank % 2 + 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_get_position_shared(file, &place);
    CHECK(place == size + size / 2);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    MPI_File_read_ordered_begin(file, more, rank % 2 + 1, MPI_INT);
    MPI_File_read_ordered_end(file, more, &status);
    CHECK(more[0] == rank && count_of(&status) == rank % 2 + 1);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    MPI_File_write_shared(file, &one, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_read_at(file, 0, all, size, MPI_INT, &status);
    CHECK(count_of(&status) == size);
    for (int other = 0, found; other < size; other++) {
        found = 0;
        for (int at = 0; at < size; at++)
            found += all[at] == other;
        CHECK(found == 1);
    }
    MPI_File_seek(file, -1, MPI_SEEK_END);
    MPI_File_get_position(file, &place);
    CHECK(place == size + size / 2 - 1);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_seek(file, 10 + rank, MPI_SEEK_SET);
    MPI_File_iwrite(file, &one, 1, MPI_INT, &requests[0]);
    MPI_File_iwrite_at_all(file, 100 + rank, &one, 1, MPI_INT, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_iread_at(file, 100 + (rank + 1) % size, &seen, 1, MPI_INT, &requests[0]);
    MPI_Wait(&requests[0], &status);
    CHECK(seen == (rank + 1) % size && count_of(&status) == 1);
    MPI_File_get_position(file, &place);
    CHECK(place == 11 + rank);
    MPI_File_set_atomicity(file, 1);
    MPI_File_write_at_all_begin(file, 10, &one, 1, MPI_INT);
    CHECK(class_of(MPI_File_set_errhandler(file, MPI_ERRORS_RETURN)) == MPI_SUCCESS);
    CHECK(class_of(MPI_File_write_all(file, &one, 1, MPI_INT, &status)) == MPI_ERR_OTHER);
    MPI_File_write_at_all_end(file, &one, &status);
    free(all);
    MPI_File_close(&file);
}

static int twice(void *memory, MPI_Datatype type, int count, void *disk, MPI_Offset place,
                 void *out) {
    for (int at = 0; at < count; at++)
        if (*(int *)out)
            ((short *)disk)[at] = ((int *)memory)[at] * 2;
        else
            ((int *)memory)[at] = ((short *)disk)[at] / 2;
    return MPI_SUCCESS;
}

static int halved(MPI_Datatype type, MPI_Aint *extent, void *to) {
    *extent = 2;
    return MPI_SUCCESS;
}

static void views(void) {
    static int out = 1, in = 0;
    MPI_Datatype etype, filetype, grid, got_etype, got_filetype;
    MPI_Offset place;
    MPI_Aint extent;
    char representation[MPI_MAX_DATAREP_STRING];
    unsigned char bytes[4];
    int value = 0x01020304, back = 0, many[3] = {1, 2, 3}, sizes[2] = {4, 4}, sub[2] = {2, 2},
        starts[2] = {1, 2};
    MPI_File file = opened(MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL);
    MPI_Type_contiguous(2, MPI_INT, &etype);
    MPI_Type_create_subarray(2, sizes, sub, starts, MPI_ORDER_C, etype, &filetype);
    MPI_Type_dup(filetype, &grid);
    MPI_Type_commit(&etype);
    MPI_Type_commit(&grid);
    MPI_File_set_view(file, 5, etype, grid, "internal", MPI_INFO_NULL);
    MPI_Type_free(&filetype);
    MPI_Type_free(&grid);
    MPI_File_get_view(file, &place, &got_etype, &got_filetype, representation);
    CHECK(place == 5 && !strcmp(representation, "internal"));
    MPI_Type_free(&got_etype);
    MPI_Type_free(&got_filetype);
    MPI_Type_free(&etype);
    MPI_File_get_byte_offset(file, 3, &place);
    CHECK(place == 5 + 8 * (2 * 4 + 3));
    MPI_File_get_byte_offset(file, 4 + 1, &place);
    CHECK(place == 5 + 8 * (16 + 4 + 3));
    MPI_File_set_view(file, 8 * rank, MPI_LONG, MPI_LONG, "external32", MPI_INFO_NULL);
    MPI_File_get_type_extent(file, MPI_LONG, &extent);
    CHECK(extent == 4);
    MPI_File_set_view(file, 4 * rank, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL);
    MPI_File_write_at_all(file, 0, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_read_at_all(file, 0, &back, 1, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(back == value);
    MPI_File_set_view(file, 4 * rank, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    MPI_File_read_at(file, 0, bytes, 4, MPI_BYTE, MPI_STATUS_IGNORE);
    CHECK(bytes[0] == 1 && bytes[3] == 4);
    CHECK(!MPI_Register_datarep("out", MPI_CONVERSION_FN_NULL, twice, halved, &out));
    CHECK(!MPI_Register_datarep("in", twice, MPI_CONVERSION_FN_NULL, halved, &in));
    CHECK(class_of(MPI_Register_datarep("in", twice, twice, halved, &in)) == MPI_ERR_DUP_DATAREP);
    MPI_File_set_view(file, 6 * rank, MPI_INT, MPI_INT, "out", MPI_INFO_NULL);
    MPI_File_write_at(file, 0, many, 3, MPI_INT, MPI_STATUS_IGNORE);
    memset(many, 0, sizeof many);
    MPI_File_set_view(file, 6 * rank, MPI_INT, MPI_INT, "in", MPI_INFO_NULL);
    MPI_File_read_at(file, 1, many, 2, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(many[0] == 2 && many[1] == 3);
    MPI_File_close(&file);
}

static void errors(void) {
    MPI_File file = (MPI_File)-1;
    MPI_Offset bytes;
    MPI_Status status;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Datatype type;
    /* Before the file's beginning, descending, and with an empty block. */
    int places[3][3] = {{-1, 2, 4}, {3, 1, 5}, {2, 4, 5}}, lengths[3][3] = {{1, 1, 1}, {1, 1, 1},
        {1, 0, 1}};
    int value = 0, length, amode, again = MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR;
    int code = MPI_File_open(MPI_COMM_WORLD, "none/x", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    MPI_Error_string(code, text, &length);
    CHECK(class_of(code) == MPI_ERR_NO_SUCH_FILE && file == MPI_FILE_NULL);
    CHECK(!strcmp(text, "MPI_ERR_NO_SUCH_FILE: none/x: No such file or directory"));
    CHECK(class_of(MPI_File_open(MPI_COMM_WORLD, name, again, MPI_INFO_NULL, &file)) ==
          MPI_ERR_FILE_EXISTS);
    amode = MPI_MODE_RDWR | MPI_MODE_RDONLY;
    CHECK(class_of(MPI_File_open(MPI_COMM_SELF, name, amode, MPI_INFO_NULL, &file)) ==
          MPI_ERR_AMODE);
    amode = rank ? MPI_MODE_RDWR : MPI_MODE_RDONLY;
    CHECK(class_of(MPI_File_open(MPI_COMM_WORLD, name, amode, MPI_INFO_NULL, &file)) ==
          (size > 1 ? MPI_ERR_AMODE : MPI_SUCCESS));
    for (int at = 0; at < 2; at++) {
        amode = at ? MPI_MODE_RDWR : MPI_MODE_RDONLY;
        CHECK(class_of(MPI_File_open(MPI_COMM_WORLD, ".", amode, MPI_INFO_NULL, &file)) ==
              MPI_ERR_BAD_FILE);
    }
    CHECK(class_of(MPI_File_get_size(MPI_FILE_NULL, &bytes)) == MPI_ERR_FILE);
    CHECK(class_of(MPI_File_delete("none", MPI_INFO_NULL)) == MPI_ERR_NO_SUCH_FILE);
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    CHECK(class_of(MPI_File_write(file, &value, 1, MPI_INT, &status)) == MPI_ERR_READ_ONLY);
    CHECK(class_of(MPI_File_set_size(file, 1)) == MPI_ERR_READ_ONLY);
    CHECK(class_of(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "best", MPI_INFO_NULL)) ==
          MPI_ERR_UNSUPPORTED_DATAREP);
    CHECK(class_of(MPI_File_seek(file, -1, MPI_SEEK_SET)) == MPI_ERR_ARG);
    for (int at = 0; at < 3; at++) {
        MPI_Type_indexed(3, lengths[at], places[at], MPI_INT, &type);
        MPI_Type_commit(&type);
        code = MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL);
        CHECK(class_of(code) == (at < 2 ? MPI_ERR_IO : MPI_SUCCESS));
        MPI_Type_free(&type);
    }
    MPI_File_get_byte_offset(file, 3, &bytes);
    CHECK(bytes == 4 * 9);
    /* The error of one leaves the others alone. */
    code = MPI_File_read_at_all(file, 0, &value, rank ? 1 : -1, MPI_INT, &status);
    CHECK(class_of(code) == (rank ? MPI_SUCCESS : MPI_ERR_COUNT));
    MPI_File_close(&file);
    amode = MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL | MPI_MODE_APPEND | MPI_MODE_DELETE_ON_CLOSE;
    MPI_File_open(MPI_COMM_WORLD, name, amode, MPI_INFO_NULL, &file);
    CHECK(class_of(MPI_File_read(file, &value, 1, MPI_INT, &status)) == MPI_ERR_ACCESS);
    CHECK(class_of(MPI_File_write(file, &value, 1, MPI_INT, &status)) ==
          MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK(!MPI_File_write_shared(file, &value, 1, MPI_INT, &status) && count_of(&status) == 1);
    MPI_File_close(&file);
    CHECK(class_of(MPI_File_delete(name, MPI_INFO_NULL)) == MPI_ERR_NO_SUCH_FILE);
    file = (MPI_File)4711;
    CHECK(class_of(MPI_File_close(&file)) == MPI_ERR_FILE);
    CHECK(MPI_File_f2c(MPI_File_c2f(file)) == file);
}

/* A file's errors are those of its handler, and others do not wait for the rank that has one. */
static void limits(void) {
    const MPI_Offset far = (MPI_Offset)1 << 61;
    MPI_Aint extents[2] = {0, -4};
    MPI_Datatype type;
    MPI_File file;
    MPI_Offset place;
    MPI_Request request;
    MPI_Status status;
    long value = 7;
    int code;
    CHECK(class_of(MPI_File_open(MPI_COMM_WORLD, NULL, 0, MPI_INFO_NULL, &file)) == MPI_ERR_ARG);
    CHECK(class_of(MPI_File_delete(NULL, MPI_INFO_NULL)) == MPI_ERR_ARG);
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    CHECK(class_of(MPI_File_get_size(file, NULL)) == MPI_ERR_ARG);
    CHECK(class_of(MPI_File_read_at(file, 0, &value, 1, MPI_INT, NULL)) == MPI_ERR_ARG);
    code = MPI_File_iwrite_at_c(file, 0, &value, far, MPI_INT, &request);
    CHECK(class_of(code) == MPI_ERR_COUNT && request == MPI_REQUEST_NULL);
    code = MPI_File_write_at_all_c(file, 8 * rank, &value, rank ? 1 : far, MPI_LONG, &status);
    CHECK(class_of(code) == (rank ? MPI_SUCCESS : MPI_ERR_COUNT));
    code = MPI_File_write_ordered_c(file, &value, rank ? 1 : far, MPI_LONG, &status);
    CHECK(class_of(code) == (rank ? MPI_SUCCESS : MPI_ERR_COUNT));
    for (int at = 0; at < 2; at++) {
        MPI_Type_create_resized(MPI_LONG, 0, extents[at], &type);
        MPI_Type_commit(&type);
        code = MPI_File_set_view(file, 0, MPI_LONG, type, "native", MPI_INFO_NULL);
        CHECK(class_of(code) == MPI_ERR_IO);
        MPI_Type_free(&type);
    }
    /* No byte of a file is so far from its beginning. */
    for (int at = 0; at < 2; at++) {
        MPI_Type_create_resized(MPI_LONG, 0, at ? (MPI_Aint)1 << 40 : 8, &type);
        MPI_Type_commit(&type);
        MPI_File_set_view(file, 0, MPI_LONG, type, "native", MPI_INFO_NULL);
        MPI_Offset beyond = at ? (MPI_Offset)1 << 24 : far;
        CHECK(class_of(MPI_File_get_byte_offset(file, beyond, &place)) == MPI_ERR_ARG);
        code = MPI_File_write_at(file, beyond, &value, 1, MPI_LONG, &status);
        CHECK(class_of(code) == MPI_ERR_ARG && count_of(&status) == 0);
        code = MPI_File_read_at_all(file, rank ? 0 : beyond, &value, 1, MPI_LONG, &status);
        CHECK(class_of(code) == (rank ? MPI_SUCCESS : MPI_ERR_ARG));
        MPI_File_seek(file, beyond, MPI_SEEK_SET);
        CHECK(class_of(MPI_File_write(file, &value, 1, MPI_LONG, &status)) == MPI_ERR_ARG);
        MPI_File_seek_shared(file, beyond, MPI_SEEK_SET);
        CHECK(class_of(MPI_File_write_shared(file, &value, 1, MPI_LONG, &status)) == MPI_ERR_ARG);
        MPI_Type_free(&type);
    }
    MPI_File_close(&file);
}

/* Blocks of the ranks in turn, so far from each other that most windows are empty. */
static void sparse(const char *how) {
    int back[2] = {5, 5};
    MPI_Datatype type;
    MPI_Info info;
    MPI_Status status;
    MPI_Info_create(&info);
    MPI_Info_set(info, "collective_buffering", how);
    MPI_File file = opened(MPI_MODE_CREATE | MPI_MODE_RDWR, info);
    MPI_File_set_size(file, 0);
    MPI_Type_create_resized(MPI_INT, 0, (MPI_Aint)1 << 55, &type);
    MPI_Type_commit(&type);
    MPI_File_set_view(file, 4 * rank, MPI_INT, type, "native", info);
    MPI_Info_free(&info);
    MPI_File_write_all(file, &rank, 1, MPI_INT, &status);
    CHECK(count_of(&status) == 1);
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    MPI_File_read_all(file, back, 2, MPI_INT, &status);
    CHECK(count_of(&status) == 1 && back[0] == rank && back[1] == 5);
    MPI_Type_free(&type);
    MPI_File_close(&file);
}

/* The ranks that write and read for all have none. */
static void no_memory(void) {
    enum { BYTES = 6 << 20, BLOCK = 1 << 16 };
    struct rlimit all, few;
    long pages;
    char *data = calloc(BYTES, 1);
    MPI_Datatype blocks;
    MPI_Info info;
    MPI_Status status;
    MPI_Info_create(&info);
    MPI_Info_set(info, "collective_buffering", "enable");
    MPI_File file = opened(MPI_MODE_CREATE | MPI_MODE_RDWR, info);
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    MPI_Info_free(&info);
    MPI_Type_vector(BYTES / BLOCK, BLOCK, BLOCK * size, MPI_BYTE, &blocks);
    MPI_Type_commit(&blocks);
    MPI_File_set_view(file, BLOCK * rank, MPI_BYTE, blocks, "native", MPI_INFO_NULL);
    FILE *statm = fopen("/proc/self/statm", "r");
    CHECK(fscanf(statm, "%ld", &pages) == 1);
    fclose(statm);
    getrlimit(RLIMIT_AS, &all);
    few = all;
    few.rlim_cur = pages * sysconf(_SC_PAGESIZE) + (2 << 20);
    setrlimit(RLIMIT_AS, &few);
    int wrote = MPI_File_write_all(file, data, BYTES, MPI_BYTE, &status);
    int read = MPI_File_read_all(file, data, BYTES, MPI_BYTE, &status);
    setrlimit(RLIMIT_AS, &all);
    CHECK(class_of(wrote) == MPI_ERR_NO_MEM && class_of(read) == MPI_ERR_NO_MEM);
    MPI_File_write_at_all(file, 0, data, BYTES, MPI_BYTE, &status);
    CHECK(count_of(&status) == BYTES / 4);
    free(data);
    MPI_Type_free(&blocks);
    MPI_File_set_size(file, 0);
    MPI_File_close(&file);
}

/* Of the ranks in turn, so that one that writes for others tells them. */
static void no_space(const char *how) {
    int data[2] = {rank, rank};
    MPI_Datatype type;
    MPI_Info info;
    MPI_File file;
    MPI_Status status;
    MPI_Info_create(&info);
    MPI_Info_set(info, "collective_buffering", how);
    CHECK(!MPI_File_open(MPI_COMM_WORLD, "/dev/full", MPI_MODE_WRONLY, info, &file));
    MPI_Info_free(&info);
    MPI_Type_create_resized(MPI_INT, 0, 4 * size, &type);
    MPI_Type_commit(&type);
    MPI_File_set_view(file, 4 * rank, MPI_INT, type, "native", MPI_INFO_NULL);
    CHECK(class_of(MPI_File_write_all(file, data, rank ? 2 : 0, MPI_INT, &status)) ==
          (rank || !strcmp(how, "enable") ? MPI_ERR_NO_SPACE : MPI_SUCCESS));
    CHECK(count_of(&status) == 0);
    CHECK(class_of(MPI_File_write_ordered(file, data, 1, MPI_INT, &status)) == MPI_ERR_NO_SPACE);
    MPI_Type_free(&type);
    MPI_File_close(&file);
}

/* Those of a pipe come and go in the order of the ranks. */
static void streams(void) {
    enum { TURNS = 50 };
    char pipe[4096];
    MPI_File file;
    int in = -1, value = rank, *all = calloc(TURNS * size, sizeof *all);
    snprintf(pipe, sizeof pipe, "%s.pipe", name);
    if (rank == 0) {
        CHECK(!mkfifo(pipe, 0600));
        in = open(pipe, O_RDWR);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    int amode = MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL, bytes = TURNS * size * 4;
    CHECK(!MPI_File_open(MPI_COMM_WORLD, pipe, amode, MPI_INFO_NULL, &file));
    CHECK(class_of(MPI_File_set_size(file, 0)) == MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK(class_of(MPI_File_preallocate(file, 9)) == MPI_ERR_UNSUPPORTED_OPERATION);
    for (int turn = 0; turn < TURNS; turn++)
        MPI_File_write_ordered(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    if (rank == 0) {
        CHECK(read(in, all, bytes) == bytes);
        for (int at = 0; at < TURNS * size; at++)
            CHECK(all[at] == at % size);
        CHECK(write(in, all, bytes) == bytes);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    amode = MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL | MPI_MODE_DELETE_ON_CLOSE;
    MPI_File_open(MPI_COMM_WORLD, pipe, amode, MPI_INFO_NULL, &file);
    for (int turn = 0; turn < TURNS; turn++) {
        MPI_File_read_ordered_begin(file, &value, 1, MPI_INT);
        MPI_File_read_ordered_end(file, &value, MPI_STATUS_IGNORE);
        CHECK(value == rank);
    }
    MPI_File_close(&file);
    if (rank == 0)
        close(in);
    free(all);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    name = argv[1];
    mixed("automatic", "5000");
    mixed("enable", "70");
    mixed("disable", "1");
    pointers();
    views();
    limits();
    sparse("automatic");
    sparse("enable");
    no_memory();
    no_space("enable");
    no_space("disable");
    streams();
    errors();
    MPI_Finalize();
    return wrong > 0;
}
