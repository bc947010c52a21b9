/* Unusual types and offsets: they work, or fail with an error. */
#include <stdint.h>
#include <unistd.h>

#include "check.h"

static MPI_File opened(const char *name)
{
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    return file;
}

/* Returns a nested type of `levels` levels: each level has two copies of the previous one, with a gap after each. */
static MPI_Datatype nested(int levels)
{
    MPI_Datatype inner, outer;
    MPI_Type_dup(MPI_BYTE, &inner);
    for (int level = 0; level < levels; level++) {
        MPI_Aint lower, extent;
        MPI_Type_get_extent(inner, &lower, &extent);
        /* From level 30 on, use one copy: doubling further would exceed the largest file. */
        MPI_Type_create_hvector(level < 30 ? 2 : 1, 1, extent + 1, inner, &outer);
        MPI_Type_free(&inner);
        MPI_Type_create_resized(outer, 0, level < 30 ? 2 * extent + 2 : extent + 1, &inner);
        MPI_Type_free(&outer);
    }
    MPI_Type_commit(&inner);
    return inner;
}

static void deep_types(void)
{
    MPI_File file = opened("starfish:mpi/deep");
    MPI_Datatype type = nested(50);
    MPI_Count bytes;
    MPI_Type_size_x(type, &bytes);
    CHECK(bytes == (MPI_Count)1 << 30);
    OK(MPI_File_set_view(file, 0, MPI_BYTE, type, "native", MPI_INFO_NULL));
    unsigned char mine[1000], back[1000];
    memset(mine, 'a' + rank, sizeof mine);
    MPI_Offset at = rank * (MPI_Offset)sizeof mine, offset;
    OK(MPI_File_write_at_all(file, at, mine, sizeof mine, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at(file, at, back, sizeof back, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(memcmp(mine, back, sizeof mine) == 0);
    /* Every level adds a gap of one byte after each of its two copies. */
    OK(MPI_File_get_byte_offset(file, 1, &offset));
    CHECK(offset == 2);
    OK(MPI_File_get_byte_offset(file, 2, &offset));
    CHECK(offset == 5);
    MPI_Type_free(&type);
    OK(MPI_File_close(&file));
}

static void negative_bounds(void)
{
    MPI_File file = opened("starfish:mpi/negative");
    int one = 1;
    MPI_Aint before = -8;
    MPI_Datatype type, moved;
    MPI_Type_create_hindexed(1, &one, &before, MPI_INT, &type);
    MPI_Type_create_resized(type, -8, 16, &moved);
    MPI_Type_commit(&moved);
    /* Data before the start of the file are rejected. */
    FAILS(MPI_File_set_view(file, 0, MPI_INT, moved, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
    OK(MPI_File_set_view(file, 8 + 4 * rank, MPI_INT, moved, "native", MPI_INFO_NULL));
    int values[3] = {rank, rank + 10, rank + 20}, back[3];
    OK(MPI_File_write_at_all(file, 0, values, 3, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int i = 0; i < 3; i++) {
        OK(MPI_File_read_at(file, rank + 4 * i, back + i, 1, MPI_INT, MPI_STATUS_IGNORE));
    }
    CHECK(memcmp(values, back, sizeof values) == 0);
    /* A type may address memory before the buffer. */
    int memory[4] = {7, 0, 0, 0};
    MPI_Type_commit(&type);
    OK(MPI_File_write_at(file, 100 + rank, memory + 2, 1, type, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at(file, 100 + rank, back, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(back[0] == 7);
    MPI_Type_free(&type);
    MPI_Type_free(&moved);
    OK(MPI_File_close(&file));
}

static void overlapping_members(void)
{
    MPI_File file = opened("starfish:mpi/overlapping");
    char mine[4096], back[4096];
    memset(mine, 'a' + rank, sizeof mine);
    for (int turn = 0; turn < 3; turn++) {
        /* All processes write the same range, or, in the second turn, each a range one byte further. */
        OK(MPI_File_write_at_all(file, 10 + rank * (turn == 1), mine, sizeof mine, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    OK(MPI_File_sync(file));
    OK(MPI_File_read_at_all(file, 0, back, sizeof back, MPI_BYTE, MPI_STATUS_IGNORE));
    for (int i = 0; i < 10; i++) {
        CHECK(back[i] == 0);
    }
    for (size_t i = 10; i < sizeof back; i++) {
        CHECK(back[i] >= 'a' && back[i] < 'a' + size);
    }
    OK(MPI_File_close(&file));
}

/* A write at offset `far` succeeds if the disks are large enough; otherwise it fails in all processes. */
static void far_away(MPI_Offset far)
{
    MPI_File file = opened("starfish:mpi/far");
    MPI_Offset bytes;
    int value = rank + 1, back = 0;
    int class = class_of(MPI_File_write_at_all(file, far + 4 * rank, &value, 4, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(class == MPI_SUCCESS || class == MPI_ERR_NO_SPACE);
    if (class == MPI_SUCCESS) {
        OK(MPI_File_read_at(file, far + 4 * rank, &back, 4, MPI_BYTE, MPI_STATUS_IGNORE));
        CHECK(back == value);
        OK(MPI_File_read_at_all(file, far / 2, &back, 4, MPI_BYTE, MPI_STATUS_IGNORE));
        CHECK(back == 0);
        OK(MPI_File_sync(file));
        OK(MPI_File_get_size(file, &bytes));
        CHECK(bytes == far + 4 * size);
    }
    /* An offset beyond the largest possible file is rejected. */
    FAILS(MPI_File_write_at(file, INT64_MAX - 1, &value, 4, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_ARG);
    OK(MPI_File_set_size(file, 0));
    OK(MPI_File_close(&file));
}

static void nothing_at_all(void)
{
    MPI_File file = opened("starfish:mpi/nothing");
    MPI_Datatype empty;
    MPI_Offset bytes;
    char byte = 'x';
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    OK(MPI_File_write_all(file, NULL, 0, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_write_all(file, &byte, 1000, empty, MPI_STATUS_IGNORE));
    OK(MPI_File_set_view(file, 0, MPI_BYTE, empty, "native", MPI_INFO_NULL));
    OK(MPI_File_write_all(file, NULL, 0, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(MPI_File_write_at(file, 0, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS);
    FAILS(MPI_File_write_at(file, 0, &byte, -1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_COUNT);
    FAILS(MPI_File_read_at_all(file, 0, &byte, -1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_COUNT);
    OK(MPI_File_get_size(file, &bytes));
    CHECK(bytes == 0);
    MPI_Type_free(&empty);
    OK(MPI_File_close(&file));
}

/* If the first process cannot take part in calls and closes the file at once, the calls of the others still complete.
   */
static void given_up(void)
{
    MPI_File file = opened("starfish:mpi/given-up");
    MPI_Request requests[2];
    MPI_Status statuses[2];
    if (rank) {
        usleep(50000);
    }
    for (int i = 0; i < 2; i++) {
        int code = MPI_File_iwrite_at_all(file, rank - 1, &rank, 1, MPI_BYTE, &requests[i]);
        CHECK(class_of(code) == (rank ? MPI_SUCCESS : MPI_ERR_ARG));
    }
    OK(MPI_Waitall(2, requests, statuses));
    OK(MPI_File_close(&file));
}

/* Types with absolute addresses (MPI_BOTTOM). */
static void absolute_memory(void)
{
    MPI_File file = opened("starfish:mpi/absolute");
    int values[4] = {rank, rank + 10, rank + 20, rank + 30}, back[4] = {0}, lengths[2] = {2, 2};
    MPI_Aint from[2], into[2];
    MPI_Datatype written, read;
    for (int i = 0; i < 2; i++) {
        MPI_Get_address(values + 2 * i, &from[i]);
        MPI_Get_address(back + 2 - 2 * i, &into[i]);
    }
    MPI_Type_create_hindexed(2, lengths, from, MPI_INT, &written);
    MPI_Type_create_hindexed(2, lengths, into, MPI_INT, &read);
    MPI_Type_commit(&written);
    MPI_Type_commit(&read);
    const char *representations[] = {"native", "external32"};
    for (int i = 0; i < 2; i++) {
        OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, representations[i], MPI_INFO_NULL));
        OK(MPI_File_write_at_all(file, 4 * rank, MPI_BOTTOM, 1, written, MPI_STATUS_IGNORE));
        memset(back, 0, sizeof back);
        OK(MPI_File_read_at(file, 4 * rank, MPI_BOTTOM, 1, read, MPI_STATUS_IGNORE));
        /* The type of the read swaps the two halves. */
        CHECK(memcmp(back + 2, values, 2 * sizeof(int)) == 0 && memcmp(back, values + 2, 2 * sizeof(int)) == 0);
        /* A short read fills only the first int of the type. */
        memset(back, 0, sizeof back);
        OK(MPI_File_read_at(file, 4 * size - 1, MPI_BOTTOM, 1, read, MPI_STATUS_IGNORE));
        CHECK(back[2] == size - 1 + 30 && back[3] == 0 && back[0] == 0);
    }
    MPI_Type_free(&written);
    MPI_Type_free(&read);
    OK(MPI_File_close(&file));
}

/* The view of a file that is only read may have a type that overlaps itself. */
static void overlapping_views(void)
{
    const char *name = "starfish:mpi/views";
    MPI_File file = opened(name);
    int values[60], back[32] = {0}, places[] = {0, 2}, count;
    for (int i = 0; i < 60; i++) {
        values[i] = i;
    }
    MPI_Datatype blocks, type, thrice;
    MPI_Type_create_indexed_block(2, 4, places, MPI_INT, &blocks);
    MPI_Type_create_resized(blocks, 0, 8 * sizeof(int), &type);
    MPI_Type_create_hvector(3, 1, 0, MPI_INT, &thrice);
    MPI_Type_commit(&type);
    MPI_Type_commit(&thrice);
    OK(MPI_File_write_at_all(file, 0, values, rank == 0 ? 60 : 0, MPI_INT, MPI_STATUS_IGNORE));
    FAILS(MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
    OK(MPI_File_close(&file));
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    OK(MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL));
    int each[] = {0, 1, 2, 3, 2, 3, 4, 5};
    for (int position = rank; position < 20; position += size) {
        /* 7 and 30 have no common factor, so the counts spread evenly over 1 to 30. */
        int wanted = 1 + position * 7 % 30;
        MPI_Status status;
        for (int together = 0; together < 2; together++) {
            memset(back, 0, sizeof back);
            OK(together ? MPI_File_read_at_all(file, position, back, wanted, MPI_INT, &status)
                        : MPI_File_read_at(file, position, back, wanted, MPI_INT, &status));
            MPI_Get_count(&status, MPI_INT, &count);
            CHECK(count == wanted);
            for (int i = 0; i < wanted; i++) {
                CHECK(back[i] == 8 * ((position + i) / 8) + each[(position + i) % 8]);
            }
        }
    }
    /* The file ends with element 59, so the last two elements of the type are beyond its end. */
    MPI_Status status;
    MPI_Offset offset;
    OK(MPI_File_seek(file, 56, MPI_SEEK_SET));
    OK(MPI_File_read(file, back, 16, MPI_INT, &status));
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK(count == 6 && back[0] == 56 && back[3] == 59 && back[4] == 58 && back[5] == 59);
    OK(MPI_File_get_position(file, &offset));
    CHECK(offset == 62);
    OK(MPI_File_seek(file, 0, MPI_SEEK_END));
    OK(MPI_File_get_position(file, &offset));
    CHECK(offset == 62);
    OK(MPI_File_get_byte_offset(file, 12, &offset));
    CHECK(offset == 10 * (MPI_Offset)sizeof(int));
    OK(MPI_File_set_view(file, 0, MPI_INT, thrice, "native", MPI_INFO_NULL));
    MPI_Request request;
    OK(MPI_File_iread_at_all(file, 3 * rank + 1, back, 4, MPI_INT, &request));
    OK(MPI_Wait(&request, &status));
    CHECK(back[0] == rank && back[1] == rank && back[2] == rank + 1 && back[3] == rank + 1);
    MPI_Type_free(&blocks);
    MPI_Type_free(&type);
    MPI_Type_free(&thrice);
    OK(MPI_File_close(&file));
}

/* Memory that is one run of bytes, although its type begins at another displacement or has another extent. */
static void runs_of_memory(void)
{
    MPI_File file = opened("starfish:mpi/memory");
    int memory[8], back[8], length = 3, one = 1;
    MPI_Aint begin = 2 * sizeof(int), address;
    MPI_Datatype later, longer, shorter, absolute;
    MPI_Type_create_hindexed(1, &length, &begin, MPI_INT, &later);
    MPI_Type_create_resized(later, 0, 7 * sizeof(int), &longer);
    MPI_Type_create_resized(later, 0, sizeof(int), &shorter);
    MPI_Get_address(memory + 1, &address);
    MPI_Type_create_hindexed(1, &one, &address, MPI_INT, &absolute);
    MPI_Datatype types[] = {later, longer, shorter};
    MPI_Type_commit(&absolute);
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int i = 0; i < 8; i++) {
        memory[i] = 10 * rank + i;
    }
    for (int i = 0; i < 3; i++) {
        MPI_Type_commit(&types[i]);
        MPI_Offset place = 100 * i + 10 * rank;
        OK(MPI_File_write_at_all(file, place, memory, 1, types[i], MPI_STATUS_IGNORE));
        memset(back, 0, sizeof back);
        OK(MPI_File_read_at(file, place, back, 1, types[i], MPI_STATUS_IGNORE));
        CHECK(memcmp(back + 2, memory + 2, sizeof(int[3])) == 0 && back[1] == 0 && back[5] == 0);
    }
    /* With the short extent, two elements overlap in memory. */
    OK(MPI_File_write_at(file, 1000 + 10 * rank, memory, 2, shorter, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at(file, 1000 + 10 * rank, back, 6, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(memcmp(back, memory + 2, sizeof(int[3])) == 0 && memcmp(back + 3, memory + 3, sizeof(int[3])) == 0);
    OK(MPI_File_write_at(file, 2000 + rank, MPI_BOTTOM, 1, absolute, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at(file, 2000 + rank, back, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(back[0] == memory[1]);
    for (int i = 0; i < 3; i++) {
        MPI_Type_free(&types[i]);
    }
    MPI_Type_free(&absolute);
    OK(MPI_File_close(&file));
}

/* Views with data in descending order are rejected, also if their type contains another such type. */
static void downwards(void)
{
    MPI_File file = opened("starfish:mpi/downwards");
    int lengths[] = {1, 1}, displacements[] = {5, 0}, one = 1;
    MPI_Aint begin = 0;
    MPI_Datatype types[3];
    MPI_Type_indexed(2, lengths, displacements, MPI_BYTE, &types[0]);
    MPI_Type_contiguous(2, types[0], &types[1]);
    MPI_Type_create_struct(1, &one, &begin, &types[1], &types[2]);
    for (int i = 0; i < 3; i++) {
        MPI_Type_commit(&types[i]);
        FAILS(MPI_File_set_view(file, 0, MPI_BYTE, types[i], "native", MPI_INFO_NULL), MPI_ERR_TYPE);
    }
    for (int i = 0; i < 3; i++) {
        MPI_Type_free(&types[i]);
    }
    OK(MPI_File_close(&file));
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    downwards();
    deep_types();
    negative_bounds();
    overlapping_members();
    far_away((MPI_Offset)1 << 34);
    far_away((MPI_Offset)1 << 40);
    nothing_at_all();
    given_up();
    absolute_memory();
    runs_of_memory();
    overlapping_views();
    return end();
}
