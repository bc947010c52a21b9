/* Processes cannot connect to each other while one of them has reached its limit of open files. Afterwards they can. */
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"

static MPI_File file;
static int values[100];

static int write_together(void)
{
    return MPI_File_write_at_all(file, 100 * rank, values, 100, MPI_INT, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    OK(MPI_File_open(MPI_COMM_WORLD, "starfish:mpi/reached", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int i = 0; i < 100; i++) {
        values[i] = 100 * rank + i;
    }
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    if (rank == 1) {
        int next = dup(0);
        close(next);
        struct rlimit full = {.rlim_cur = (rlim_t)next, .rlim_max = limit.rlim_max};
        CHECK(next > 0 && setrlimit(RLIMIT_NOFILE, &full) == 0);
    }
    FAILS(write_together(), MPI_ERR_IO);
    FAILS(write_together(), MPI_ERR_IO);
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    int back[100], next = (rank + 1) % size;
    for (int turn = 0; turn < 2; turn++) {
        OK(write_together());
        OK(MPI_File_read_at_all(file, 100 * next, back, 100, MPI_INT, MPI_STATUS_IGNORE));
        for (int i = 0; i < 100; i++) {
            CHECK(back[i] == 100 * next + i);
        }
    }
    OK(MPI_File_close(&file));
    return end();
}
