/* Writes a file in atomic mode. Creates a file `begun` in a directory before the write, and `written` after it. locked
   DIRECTORY */
#include <unistd.h>

#include "check.h"

static void tell(const char *directory, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *told = fopen(path, "w");
    CHECK(told && fclose(told) == 0);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(argc == 2);
    alarm(40);
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, "starfish:mpi/locked", MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_set_atomicity(file, 1));
    tell(argv[1], "begun");
    OK(MPI_File_write_at(file, 0, "atomic", 6, MPI_BYTE, MPI_STATUS_IGNORE));
    tell(argv[1], "written");
    OK(MPI_File_close(&file));
    return end();
}
