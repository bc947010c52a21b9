/* All processes see the same size of a file that is written through write caches. */
#include "check.h"

static MPI_Offset size_of(MPI_File file)
{
    MPI_Offset bytes;
    OK(MPI_File_get_size(file, &bytes));
    return bytes;
}

/* After a sync by all processes, each sees the writes of the others. */
static void sync_all(MPI_File file)
{
    OK(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_sync(file));
}

/* In atomic mode a process reads the writes of another at once, even if they are larger than any queue. */
static void atomic(MPI_File file)
{
    enum { LARGE = 1 << 20 };
    char *bytes = malloc(LARGE);
    int other = (rank + 1) % size;
    OK(MPI_File_set_atomicity(file, 1));
    for (int round = 0; round < 3; round++) {
        memset(bytes, 'a' + 5 * round + rank, LARGE);
        OK(MPI_File_write_at(file, (rank + 1) * (MPI_Offset)LARGE, bytes, LARGE, MPI_CHAR, MPI_STATUS_IGNORE));
        MPI_Barrier(MPI_COMM_WORLD);
        OK(MPI_File_read_at(file, (other + 1) * (MPI_Offset)LARGE, bytes, LARGE, MPI_CHAR, MPI_STATUS_IGNORE));
        for (int i = 0; i < LARGE; i++) {
            CHECK(bytes[i] == 'a' + 5 * round + other);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    OK(MPI_File_set_atomicity(file, 0));
    free(bytes);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_File file;
    MPI_Info info;
    MPI_Status status;
    MPI_Offset position;
    char bytes[1000];
    int count;
    MPI_Info_create(&info);
    MPI_Info_set(info, "starfish_method", "write-cached");
    OK(MPI_File_open(MPI_COMM_WORLD, "starfish:mpi/cached", MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file));
    MPI_Info_free(&info);
    memset(bytes, 'a' + rank, sizeof bytes);
    OK(MPI_File_write_at_all(file, rank * (MPI_Offset)sizeof bytes, bytes, sizeof bytes, MPI_CHAR, &status));
    sync_all(file);
    CHECK(size_of(file) == size * (MPI_Offset)sizeof bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_set_size(file, 100));
    CHECK(size_of(file) == 100);
    OK(MPI_File_read_at_all(file, rank * (MPI_Offset)sizeof bytes, bytes, sizeof bytes, MPI_CHAR, &status));
    MPI_Get_count(&status, MPI_CHAR, &count);
    CHECK(count == (rank ? 0 : 100));
    OK(MPI_File_seek(file, 0, MPI_SEEK_END));
    OK(MPI_File_get_position(file, &position));
    CHECK(position == 100);
    sync_all(file);
    CHECK(size_of(file) == 100);
    atomic(file);
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_set_size(file, 100));
    /* The barrier is needed because the write of the last process extends the file, which others may see at once. */
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size - 1) {
        OK(MPI_File_write(file, "END", 3, MPI_CHAR, &status));
    }
    OK(MPI_File_close(&file));
    OK(MPI_File_open(MPI_COMM_WORLD, "starfish:mpi/cached", MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    CHECK(size_of(file) == 103);
    OK(MPI_File_read_at(file, 98, bytes, 10, MPI_CHAR, &status));
    CHECK(memcmp(bytes, "aaEND", 5) == 0);
    OK(MPI_File_close(&file));
    return end();
}
