/* Stats a file on a mount by system calls, right after MPI calls have changed its name or size. renewed NAME */
#include "check.h"
#include <sys/stat.h>
#include <unistd.h>

/* Returns the size from stat, or -1 if the file does not exist. */
static long size_of(const char *name)
{
    struct stat found;
    return stat(name, &found) == 0 ? (long)found.st_size : -1;
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(argc == 2);
    const char *name = argv[1];
    MPI_File file;
    for (int round = 0; round < 3; round++) {
        CHECK(access(name, F_OK) != 0);
        OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
        CHECK(size_of(name) == 0);
        OK(MPI_File_write_at(file, 0, "12345", 5, MPI_CHAR, MPI_STATUS_IGNORE));
        OK(MPI_File_sync(file));
        CHECK(size_of(name) == 5);
        OK(MPI_File_write_at(file, 5, "12345", 5, MPI_CHAR, MPI_STATUS_IGNORE));
        OK(MPI_File_close(&file));
        CHECK(size_of(name) == 10);
        OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_WRONLY | MPI_MODE_APPEND, MPI_INFO_NULL, &file));
        OK(MPI_File_write(file, "12345", 5, MPI_CHAR, MPI_STATUS_IGNORE));
        OK(MPI_File_close(&file));
        CHECK(size_of(name) == 15);
        OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
        OK(MPI_File_set_size(file, 3));
        CHECK(size_of(name) == 3);
        OK(MPI_File_preallocate(file, 7));
        CHECK(size_of(name) == 7);
        OK(MPI_File_close(&file));
        CHECK(access(name, F_OK) == 0);
        if (round == 1) {
            OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
            OK(MPI_File_close(&file));
        } else {
            OK(MPI_File_delete(name, MPI_INFO_NULL));
        }
        CHECK(access(name, F_OK) != 0 && size_of(name) == -1);
    }
    return end();
}
