/* Opens a file that cannot be opened; each process ends all of them as soon as it knows. What they tell goes to a file: of
   a program that aborts the launcher may lose what it has not handed on yet.

     aborted NAME TOLD */
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
