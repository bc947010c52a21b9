/* All file functions without derived types: pointers, sizes, modes, errors, requests, handles. */
#include "check.h"

static int *numbers(int count, int from)
{
    int *made = malloc((size_t)count * sizeof(int));
    for (int i = 0; i < count; i++) {
        made[i] = from + i;
    }
    return made;
}

static int count_of(MPI_Status *status)
{
    int count;
    MPI_Get_count(status, MPI_INT, &count);
    return count;
}

static void modes_and_classes(void)
{
    MPI_File file;
    const char *name = "starfish:mpi/modes";
    FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
    CHECK(file == MPI_FILE_NULL);
    FAILS(MPI_File_delete(name, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
    FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &file), MPI_ERR_AMODE);
    FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE, MPI_INFO_NULL, &file), MPI_ERR_AMODE);
    FAILS(MPI_File_open(MPI_COMM_WORLD, name, rank ? MPI_MODE_RDONLY : MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL,
                        &file),
          MPI_ERR_NOT_SAME);
    int made = MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY;
    OK(MPI_File_open(MPI_COMM_WORLD, name, made, MPI_INFO_NULL, &file));
    int value = 7, amode;
    OK(MPI_File_get_amode(file, &amode));
    CHECK(amode == made);
    FAILS(MPI_File_read(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ACCESS);
    OK(MPI_File_write_at(file, rank * (MPI_Offset)sizeof(int), &rank, 1, MPI_INT, MPI_STATUS_IGNORE));
    FAILS(MPI_File_write_at(file, -4, &value, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ARG);
    FAILS(MPI_File_seek(file, -1, MPI_SEEK_SET), MPI_ERR_ARG);
    OK(MPI_File_close(&file));
    CHECK(file == MPI_FILE_NULL);
    FAILS(MPI_File_open(MPI_COMM_WORLD, name, made, MPI_INFO_NULL, &file), MPI_ERR_FILE_EXISTS);
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    FAILS(MPI_File_write(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_READ_ONLY);
    FAILS(MPI_File_set_size(file, 0), MPI_ERR_READ_ONLY);
    OK(MPI_File_read_at(file, (size - 1 - rank) * (MPI_Offset)sizeof(int), &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(value == size - 1 - rank);
    FAILS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "nonsense", MPI_INFO_NULL), MPI_ERR_UNSUPPORTED_DATAREP);
    FAILS(MPI_File_set_view(file, -1, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_ARG);
    OK(MPI_File_close(&file));
    /* The last close deletes the file. */
    int gone = MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    OK(MPI_File_open(MPI_COMM_WORLD, name, gone, MPI_INFO_NULL, &file));
    OK(MPI_File_close(&file));
    MPI_Barrier(MPI_COMM_WORLD);
    FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
}

static void own_pointers(void)
{
    MPI_File file;
    MPI_Status status;
    MPI_Offset position, offset, bytes;
    OK(MPI_File_open(MPI_COMM_WORLD, "starfish:mpi/pointers", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    int *mine = numbers(100, 100 * rank), back[100];
    MPI_Datatype every, blocks;
    MPI_Type_vector(10, 10, 10 * size, MPI_INT, &blocks);
    MPI_Type_create_resized(blocks, 0, 100 * size * (MPI_Aint)sizeof(int), &every);
    MPI_Type_commit(&every);
    OK(MPI_File_set_view(file, 10 * rank * (MPI_Offset)sizeof(int), MPI_INT, every, "native", MPI_INFO_NULL));
    OK(MPI_File_write(file, mine, 60, MPI_INT, &status));
    CHECK(count_of(&status) == 60);
    OK(MPI_File_write(file, mine + 60, 40, MPI_INT, &status));
    OK(MPI_File_get_position(file, &position));
    CHECK(position == 100);
    OK(MPI_File_get_byte_offset(file, 10, &offset));
    CHECK(offset == (10 * rank + 10 * size) * (MPI_Offset)sizeof(int));
    OK(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_sync(file));
    OK(MPI_File_get_size(file, &bytes));
    CHECK(bytes == 100 * size * (MPI_Offset)sizeof(int));
    OK(MPI_File_seek(file, -40, MPI_SEEK_CUR));
    OK(MPI_File_read_all(file, back, 40, MPI_INT, &status));
    CHECK(memcmp(back, mine + 60, 40 * sizeof(int)) == 0);
    OK(MPI_File_seek(file, 0, MPI_SEEK_END));
    OK(MPI_File_get_position(file, &position));
    CHECK(position == 100);
    /* The writes of other processes are visible, too. */
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at(file, 10 * ((rank + 1) % size), back, 10, MPI_INT, &status));
    CHECK(back[3] == 100 * ((rank + 1) % size) + 3);
    MPI_Datatype etype, filetype;
    char representation[MPI_MAX_DATAREP_STRING];
    OK(MPI_File_get_view(file, &offset, &etype, &filetype, representation));
    CHECK(offset == 0 && etype == MPI_INT && filetype == MPI_INT && strcmp(representation, "native") == 0);
    OK(MPI_File_close(&file));
    MPI_Type_free(&every);
    MPI_Type_free(&blocks);
    free(mine);
}

/* A file that ends within an elementary type: a read of part of the last one moves the pointer behind it. */
static void short_reads(void)
{
    MPI_File file;
    MPI_Status status;
    MPI_Offset position, offset, bytes;
    int numbers[10], count;
    char all[24] = "";
    char name[] = "starfish:mpi/short-0";
    name[sizeof name - 2] += (char)rank;
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_write(file, "AAAABBBBCCCCD", 13, MPI_CHAR, &status));
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_read(file, numbers, 10, MPI_INT, &status));
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK(count == 13);
    OK(MPI_File_get_position(file, &position));
    OK(MPI_File_get_byte_offset(file, position, &offset));
    CHECK(position == 4 && offset == 16);
    /* MPI_SEEK_END moves to the same position. */
    OK(MPI_File_seek(file, 0, MPI_SEEK_END));
    OK(MPI_File_get_position(file, &position));
    CHECK(position == 4);
    OK(MPI_File_read_all(file, numbers, 10, MPI_INT, &status));
    CHECK(count_of(&status) == 0);
    OK(MPI_File_write(file, "zzzz", 1, MPI_INT, &status));
    OK(MPI_File_seek(file, 0, MPI_SEEK_CUR));
    OK(MPI_File_write(file, "yyyy", 1, MPI_INT, &status));
    OK(MPI_File_get_position(file, &position));
    OK(MPI_File_get_size(file, &bytes));
    CHECK(position == 6 && bytes == 24);
    OK(MPI_File_read_at(file, 0, all, 6, MPI_INT, &status));
    CHECK(memcmp(all, "AAAABBBBCCCCD\0\0\0zzzzyyyy", 24) == 0);
    OK(MPI_File_close(&file));
}

/* Other processes see a write when its call has returned. MPI does not require this, but programs written for local
   file systems rely on it. */
static void seen_without_sync(void)
{
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, "starfish:mpi/seen", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    for (int turn = 0; turn < 8; turn++) {
        int value = 0, writer = turn % size;
        MPI_Offset offset = (turn / 2) * (MPI_Offset)sizeof(int);
        if (rank == writer) {
            OK(MPI_File_write_at(file, offset, &turn, 1, MPI_INT, MPI_STATUS_IGNORE));
        }
        MPI_Barrier(MPI_COMM_WORLD);
        OK(MPI_File_read_at(file, offset, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
        CHECK(value == turn);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    OK(MPI_File_close(&file));
}

static void shared_pointers(void)
{
    MPI_File file;
    MPI_Status status;
    MPI_Offset position;
    OK(MPI_File_open(MPI_COMM_WORLD, "starfish:mpi/shared", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    /* Each process writes numbers, which no other process overwrites. */
    for (int i = 0; i < 5; i++) {
        int pair[] = {rank, i};
        OK(MPI_File_write_shared(file, pair, 2, MPI_INT, &status));
        CHECK(count_of(&status) == 2);
    }
    OK(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_get_position_shared(file, &position));
    CHECK(position == 10 * size);
    int *all = calloc((size_t)(10 * size), sizeof(int)), found = 0;
    OK(MPI_File_read_at(file, 0, all, 10 * size, MPI_INT, &status));
    for (int i = 0; i < 5 * size; i++) {
        found += all[2 * i] == rank ? 1 : 0;
    }
    CHECK(found == 5);
    /* Ordered writes, in the order of ranks, each with another count. */
    int own[4] = {rank, rank, rank, rank}, back[4] = {-1, -1, -1, -1}, count = rank % 3 + 1, before = 0;
    for (int i = 0; i < rank; i++) {
        before += i % 3 + 1;
    }
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    OK(MPI_File_write_ordered(file, own, count, MPI_INT, &status));
    OK(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_read_at(file, before, back, count, MPI_INT, &status));
    CHECK(memcmp(own, back, (size_t)count * sizeof(int)) == 0);
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    memset(back, 0xff, sizeof back);
    OK(MPI_File_read_ordered_begin(file, back, count, MPI_INT));
    OK(MPI_File_read_ordered_end(file, back, &status));
    CHECK(count_of(&status) == count && memcmp(own, back, (size_t)count * sizeof(int)) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_seek_shared(file, 3, MPI_SEEK_CUR));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Offset after;
    OK(MPI_File_get_position_shared(file, &after));
    int total = 0, mine = count;
    MPI_Allreduce(&mine, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(after == total + 3);
    /* A new view begins at 0. */
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_get_position_shared(file, &after));
    CHECK(after == 0);
    OK(MPI_File_close(&file));
    free(all);
}

static void sizes(void)
{
    MPI_File file;
    MPI_Offset bytes;
    OK(MPI_File_open(MPI_COMM_WORLD, "starfish:mpi/sizes", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_preallocate(file, 200000));
    OK(MPI_File_get_size(file, &bytes));
    CHECK(bytes == 200000);
    OK(MPI_File_preallocate(file, 1000));
    OK(MPI_File_get_size(file, &bytes));
    CHECK(bytes == 200000);
    OK(MPI_File_set_size(file, 70001));
    OK(MPI_File_get_size(file, &bytes));
    CHECK(bytes == 70001);
    if (size > 1) {
        FAILS(MPI_File_set_size(file, 10 + rank), MPI_ERR_NOT_SAME);
    }
    char zeros[4] = {1, 1, 1, 1};
    MPI_Status status;
    OK(MPI_File_read_at_all(file, 70000, zeros, 4, MPI_BYTE, &status));
    int count;
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK(count == 1 && zeros[0] == 0 && zeros[1] == 1);
    OK(MPI_File_close(&file));
    /* In a file opened with MPI_MODE_APPEND, both pointers begin at the end. */
    OK(MPI_File_open(MPI_COMM_WORLD, "starfish:mpi/sizes", MPI_MODE_WRONLY | MPI_MODE_APPEND, MPI_INFO_NULL, &file));
    OK(MPI_File_get_position(file, &bytes));
    CHECK(bytes == 70001);
    char byte = 'x';
    OK(MPI_File_write_ordered(file, &byte, 1, MPI_CHAR, &status));
    OK(MPI_File_sync(file));
    OK(MPI_File_get_size(file, &bytes));
    CHECK(bytes == 70001 + size);
    OK(MPI_File_close(&file));
}

static void requests_and_split_calls(void)
{
    MPI_File file;
    MPI_Status status;
    OK(MPI_File_open(MPI_COMM_WORLD, "starfish:mpi/requests", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_set_view(file, 1000 * rank * (MPI_Offset)sizeof(int), MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    int *mine = numbers(1000, 1000 * rank), back[1000];
    MPI_Request requests[2];
    MPI_Status statuses[2];
    OK(MPI_File_iwrite(file, mine, 500, MPI_INT, &requests[0]));
    OK(MPI_File_iwrite_at_all(file, 500, mine + 500, 500, MPI_INT, &requests[1]));
    OK(MPI_Waitall(2, requests, statuses));
    CHECK(count_of(&statuses[0]) == 500 && count_of(&statuses[1]) == 500);
    OK(MPI_File_iread_at(file, 100, back, 300, MPI_INT, &requests[0]));
    int is_done = 0;
    while (!is_done) {
        OK(MPI_Test(&requests[0], &is_done, &status));
    }
    CHECK(count_of(&status) == 300 && memcmp(back, mine + 100, 300 * sizeof(int)) == 0);
    OK(MPI_File_write_at_all_begin(file, 0, mine, 1000, MPI_INT));
    FAILS(MPI_File_read_all_begin(file, back, 1, MPI_INT), MPI_ERR_OTHER);
    OK(MPI_File_write_at_all_end(file, mine, &status));
    CHECK(count_of(&status) == 1000);
    FAILS(MPI_File_write_at_all_end(file, mine, &status), MPI_ERR_OTHER);
    OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
    OK(MPI_File_read_all_begin(file, back, 1000, MPI_INT));
    OK(MPI_File_read_all_end(file, back, &status));
    CHECK(memcmp(back, mine, sizeof back) == 0);
    OK(MPI_File_close(&file));
    free(mine);
}

/* In atomic mode a read sees either all or nothing of a concurrent write. */
static void atomicity(void)
{
    enum { LONG = 50000 };
    MPI_File file;
    int flag;
    OK(MPI_File_open(MPI_COMM_WORLD, "starfish:mpi/atomic", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_set_atomicity(file, 1));
    OK(MPI_File_get_atomicity(file, &flag));
    CHECK(flag == 1);
    int *data = calloc(LONG, sizeof(int)), *back = calloc(LONG, sizeof(int));
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < LONG; i++) {
            data[i] = rank + 10 * round;
        }
        OK(MPI_File_write_at(file, 0, data, LONG, MPI_INT, MPI_STATUS_IGNORE));
        OK(MPI_File_read_at(file, 0, back, LONG, MPI_INT, MPI_STATUS_IGNORE));
        for (int i = 1; i < LONG; i++) {
            CHECK(back[i] == back[0]);
        }
    }
    OK(MPI_File_close(&file));
    free(data);
    free(back);
}

static int called, called_with;

static void handler(MPI_File *file, int *code, ...)
{
    MPI_Offset bytes;
    called_with = class_of(*code);
    called++;
    /* The handler can use the file that it gets. */
    OK(MPI_File_get_size(*file, &bytes));
}

static void handles_and_handlers(void)
{
    MPI_File file;
    MPI_Errhandler own, found;
    OK(MPI_File_open(MPI_COMM_WORLD, "starfish:mpi/handles", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    CHECK(renumbered(file) == file);
    OK(MPI_File_get_errhandler(file, &found));
    CHECK(found == MPI_ERRORS_RETURN);
    OK(MPI_File_create_errhandler(handler, &own));
    OK(MPI_File_set_errhandler(file, own));
    OK(MPI_Errhandler_free(&own));
    FAILS(MPI_File_seek(file, -1, MPI_SEEK_SET), MPI_ERR_ARG);
    CHECK(called == 1 && called_with == MPI_ERR_ARG);
    OK(MPI_File_call_errhandler(file, MPI_ERR_NO_SPACE));
    CHECK(called == 2 && called_with == MPI_ERR_NO_SPACE);
    MPI_Group group, world;
    int result;
    OK(MPI_File_get_group(file, &group));
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_compare(group, world, &result);
    CHECK(result == MPI_IDENT);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    MPI_Info info;
    char value[100];
    int is_there;
    OK(MPI_File_get_info(file, &info));
    MPI_Info_get(info, "striping_unit", 99, value, &is_there);
    CHECK(is_there && atoi(value) > 0);
    MPI_Info_free(&info);
    OK(MPI_File_close(&file));
    /* Hints set the striping. */
    MPI_Info_create(&info);
    MPI_Info_set(info, "striping_unit", "8192");
    MPI_Info_set(info, "striping_factor", "1");
    OK(MPI_File_open(MPI_COMM_WORLD, "starfish:mpi/striped", MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file));
    MPI_Info_free(&info);
    OK(MPI_File_get_info(file, &info));
    MPI_Info_get(info, "striping_unit", 99, value, &is_there);
    CHECK(is_there && atoi(value) == 8192);
    MPI_Info_get(info, "striping_factor", 99, value, &is_there);
    CHECK(is_there && atoi(value) == 1);
    MPI_Info_free(&info);
    OK(MPI_File_close(&file));
}

static void handler_of_no_file(MPI_File *file, int *code, ...)
{
    (void)file;
    called_with = class_of(*code);
    called++;
}

/* The error handler of MPI_FILE_NULL is called when an open fails, and files opened later inherit it. */
static void handlers_of_no_file(void)
{
    MPI_File file;
    MPI_Errhandler own;
    OK(MPI_File_create_errhandler(handler_of_no_file, &own));
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, own));
    called = 0;
    FAILS(MPI_File_open(MPI_COMM_WORLD, "starfish:mpi/missing", MPI_MODE_RDONLY, MPI_INFO_NULL, &file),
          MPI_ERR_NO_SUCH_FILE);
    CHECK(file == MPI_FILE_NULL && called == 1 && called_with == MPI_ERR_NO_SUCH_FILE);
    FAILS(MPI_File_delete("starfish:mpi/missing", MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
    CHECK(called == 2);
    OK(MPI_File_open(MPI_COMM_WORLD, "starfish:mpi/handles", MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    FAILS(MPI_File_seek(file, -1, MPI_SEEK_SET), MPI_ERR_ARG);
    CHECK(called == 3 && called_with == MPI_ERR_ARG);
    OK(MPI_File_close(&file));
    /* The handler is not freed, because MPICH does not count the files that inherit it. */
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
}

/* Files that are not on Starfish work as without the shim. */
static void handed_on(const char *directory)
{
    char name[4096];
    MPI_File file;
    snprintf(name, sizeof name, "%s/local", directory);
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    int value = -1;
    OK(MPI_File_write_at_all(file, rank * (MPI_Offset)sizeof(int), &rank, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_read_at(file, rank * (MPI_Offset)sizeof(int), &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(value == rank);
    CHECK(renumbered(file) == file);
    OK(MPI_File_close(&file));
}

/* Two groups of processes, each with a separate file. */
static void parts_of_all(void)
{
    MPI_Comm half;
    MPI_File file;
    char name[] = "starfish:mpi/half-0";
    name[sizeof name - 2] += (char)(rank % 2);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    OK(MPI_File_open(half, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_write_ordered(file, &rank, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
    int own, back = -1;
    MPI_Comm_rank(half, &own);
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    OK(MPI_File_read_at_all(file, own * (MPI_Offset)sizeof(int), &back, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(back == rank);
    OK(MPI_File_close(&file));
    MPI_Comm_free(&half);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(argc == 2);
    modes_and_classes();
    own_pointers();
    short_reads();
    seen_without_sync();
    shared_pointers();
    sizes();
    requests_and_split_calls();
    atomicity();
    handles_and_handlers();
    handlers_of_no_file();
    handed_on(argv[1]);
    parts_of_all();
    return end();
}
