/* Tries to open a file that cannot be opened; each process aborts all of them as soon as its open has failed. Messages
   go to a file, because the launcher may lose output of a program that aborts. aborted NAME TOLD */
#include "check.h"

#include <fcntl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(argc == 3);
    CHECK(dup2(open(argv[2], O_CREAT | O_WRONLY | O_APPEND, 0600), STDERR_FILENO) == STDERR_FILENO);
    MPI_File file;
    if (MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS) {
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    return end();
}
