/* Members of a file make different collective calls: all get errors, without delay. */
#include "check.h"

static void closed_early(const char *name)
{
    MPI_File file;
    char bytes[100] = {0};
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    if (rank == 0) {
        FAILS(MPI_File_write_at_all(file, 0, bytes, sizeof bytes, MPI_CHAR, MPI_STATUS_IGNORE), MPI_ERR_IO);
    }
    FAILS(MPI_File_close(&file), MPI_ERR_IO);
}

static void other_direction(const char *name)
{
    MPI_File file;
    MPI_Offset bytes_there;
    char bytes[100] = {0};
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    if (rank == 0)
        FAILS(MPI_File_read_all(file, bytes, sizeof bytes, MPI_CHAR, MPI_STATUS_IGNORE), MPI_ERR_IO);
    else
        FAILS(MPI_File_write_all(file, bytes, sizeof bytes, MPI_CHAR, MPI_STATUS_IGNORE), MPI_ERR_IO);
    OK(MPI_File_get_size(file, &bytes_there));
    CHECK(bytes_there == 0);
    FAILS(MPI_File_close(&file), MPI_ERR_IO);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    closed_early("starfish:mpi/closed-early");
    other_direction("starfish:mpi/other-direction");
    return end();
}
