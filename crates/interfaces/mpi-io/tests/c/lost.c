/*
 * Processes write and read collectively until one of them kills itself, or the test stops an agent. The remaining
 * processes must soon get an error.
 *
 *   lost member|agent DIRECTORY
 *
 * With `member`, the last process kills itself before its third call. After its first two calls, process 0 creates a
 * file `begun` in the directory. Each remaining process writes its error to a file named by its rank.
 */
#include <signal.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

/* Limit of the run time in seconds. */
enum { BOUND = 30 };

enum { BYTES = 1 << 18 };

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(argc == 3 && chdir(argv[2]) == 0);
    int is_killed = strcmp(argv[1], "member") == 0 && rank == size - 1;
    alarm(BOUND);
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, "starfish:mpi/lost", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    MPI_Datatype blocks;
    MPI_Type_vector(64, BYTES / 64, size * (BYTES / 64), MPI_BYTE, &blocks);
    MPI_Type_commit(&blocks);
    OK(MPI_File_set_view(file, rank * (MPI_Offset)(BYTES / 64), MPI_BYTE, blocks, "native", MPI_INFO_NULL));
    unsigned char *bytes = calloc(BYTES, 1);
    int code = MPI_SUCCESS;
    double begun = now();
    for (int call = 0; code == MPI_SUCCESS; call++) {
        if (is_killed && call == 2) {
            kill(getpid(), SIGKILL);
        }
        if (rank == 0 && call == 2) {
            close(creat("begun", 0600));
        }
        begun = now();
        code = call % 2 ? MPI_File_read_at_all(file, 0, bytes, BYTES, MPI_BYTE, MPI_STATUS_IGNORE)
                        : MPI_File_write_at_all(file, 0, bytes, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    double failed = now();
    char text[MPI_MAX_ERROR_STRING], name[16];
    int length;
    MPI_Error_string(code, text, &length);
    MPI_File_close(&file);
    snprintf(name, sizeof name, "%d", rank);
    FILE *told = fopen(name, "w");
    CHECK(told);
    fprintf(told, "%s after %.1f s: %s; closed after %.1f s\n", class_of(code) == MPI_ERR_IO ? "MPI_ERR_IO" : "another class",
            failed - begun, text, now() - failed);
    CHECK(fclose(told) == 0);
    if (strcmp(argv[1], "member") == 0) {
        /* MPI_Finalize would wait for the killed process. */
        _exit(0);
    }
    return end();
}
