/* Opens a file that cannot be opened; each process ends all of them as soon as it knows.

     aborted NAME */
#include "check.h"

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(argc == 2);
    MPI_File file;
    if (MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS) {
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    return end();
}
