/* Writes and syncs a file, and keeps it open until a file "seen" exists in a directory. Then reads the data of all.
   held DIRECTORY */

#include <unistd.h>

#include "check.h"

/* Count of numbers of each process; the numbers of all processes are interleaved in the file. */
#define COUNT 5000

static void local_file(const char *directory, const char *name, char path[4096])
{
    snprintf(path, 4096, "%s/%s", directory, name);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(argc == 2);
    MPI_File file;
    MPI_Datatype every;
    int numbers[COUNT], back = -1;
    char synced[4096], seen[4096];
    for (int i = 0; i < COUNT; i++) {
        numbers[i] = i * size + rank;
    }
    MPI_Type_create_resized(MPI_INT, 0, size * (MPI_Aint)sizeof(int), &every);
    MPI_Type_commit(&every);
    OK(MPI_File_open(MPI_COMM_WORLD, "starfish:mpi/held", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_set_view(file, rank * (MPI_Offset)sizeof(int), MPI_INT, every, "native", MPI_INFO_NULL));
    /* Write half of the numbers collectively and half independently. */
    OK(MPI_File_write_all(file, numbers, COUNT / 2, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_write(file, numbers + COUNT / 2, COUNT / 2, MPI_INT, MPI_STATUS_IGNORE));
    /* A process sees its own writes at once. */
    OK(MPI_File_read_at(file, COUNT - 1, &back, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(back == numbers[COUNT - 1]);
    OK(MPI_File_sync(file));
    local_file(argv[1], "synced", synced);
    local_file(argv[1], "seen", seen);
    if (rank == 0) {
        FILE *told = fopen(synced, "w");
        CHECK(told && fclose(told) == 0);
    }
    for (int i = 0; access(seen, F_OK) != 0; i++) {
        CHECK(i < 4000);
        usleep(5000);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    int other = (rank + 1) % size;
    OK(MPI_File_set_view(file, other * (MPI_Offset)sizeof(int), MPI_INT, every, "native", MPI_INFO_NULL));
    for (int i = 0; i < COUNT; i += COUNT - 1) {
        OK(MPI_File_read_at(file, i, &back, 1, MPI_INT, MPI_STATUS_IGNORE));
        CHECK(back == i * size + other);
    }
    OK(MPI_File_close(&file));
    MPI_Type_free(&every);
    return end();
}
