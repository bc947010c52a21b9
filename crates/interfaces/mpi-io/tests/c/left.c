/* A program that ends with an open file keeps its data. A child that it has forked can end, too. */
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { BYTES = 100000 };

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    alarm(40);
    MPI_File file;
    char *bytes = malloc(BYTES);
    memset(bytes, 'a' + rank, BYTES);
    OK(MPI_File_open(MPI_COMM_WORLD, "starfish:mpi/left", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_write_at(file, rank * (MPI_Offset)BYTES, bytes, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    pid_t child = fork();
    if (child == 0) {
        exit(7);
    }
    int status = 0;
    for (int i = 0; waitpid(child, &status, WNOHANG) == 0; i++) {
        CHECK(i < 1000);
        usleep(10000);
    }
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    MPI_Barrier(MPI_COMM_WORLD);
    return end();
}
