/*
 * Measures collective writes and reads of a file: each process has one contiguous part, and then all read the whole file.
 *
 *   contiguous NAME MIB ROUNDS [KEY=VALUE ...]
 *
 * In each of ROUNDS rounds, each process writes its part of MIB MiB and syncs, reopens the file and reads its part, and reads
 * the whole file; all data are checked. Prints the best rates in millions of bytes per second: writing with MPI_File_sync,
 * reading, and reading by all, where the data of each process count. KEY=VALUE are MPI hints.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAM "contiguous"
#include "checked.h"
#include "timed.h"

enum { WRITTEN, READ, READ_BY_ALL, KINDS };

static double best[KINDS];

/* Records the time since the common begin, of the slowest process. */
static void note(int kind, double begun)
{
    double took = longest(MPI_Wtime() - begun);
    best[kind] = best[kind] == 0 || took < best[kind] ? took : best[kind];
}

static void check(const char *bytes, size_t count, int owner, int round)
{
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != (char)(owner + 7 * round + 1)) {
            fprintf(stderr, "contiguous: a byte of process %d is wrong in round %d\n", owner, round);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
}

static void run(const char *name, int each, int round, MPI_Info info, char *whole)
{
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Offset mine = rank * (MPI_Offset)each;
    MPI_File file;
    memset(whole, rank + 7 * round + 1, (size_t)each);
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, info, &file));
    double begun = begin_together();
    OK(MPI_File_write_at_all(file, mine, whole, each, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_sync(file));
    note(WRITTEN, begun);
    OK(MPI_File_close(&file));
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, info, &file));
    memset(whole, 0, (size_t)each);
    begun = begin_together();
    OK(MPI_File_read_at_all(file, mine, whole, each, MPI_BYTE, MPI_STATUS_IGNORE));
    note(READ, begun);
    check(whole, (size_t)each, rank, round);
    OK(MPI_File_close(&file));
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, info, &file));
    begun = begin_together();
    OK(MPI_File_read_at_all(file, 0, whole, size * each, MPI_BYTE, MPI_STATUS_IGNORE));
    note(READ_BY_ALL, begun);
    for (int owner = 0; owner < size; owner++) {
        check(whole + owner * (size_t)each, (size_t)each, owner, round);
    }
    OK(MPI_File_close(&file));
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Info info;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 4) {
        fprintf(stderr, "contiguous NAME MIB ROUNDS [KEY=VALUE ...]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Info_create(&info);
    for (int i = 4; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        if (value) {
            *value = 0;
            MPI_Info_set(info, argv[i], value + 1);
        }
    }
    int each = atoi(argv[2]) << 20;
    char *whole = malloc(size * (size_t)each);
    for (int round = 0; whole && round < atoi(argv[3]); round++) {
        run(argv[1], each, round, info, whole);
    }
    if (rank == 0) {
        double millions = size * (each / 1e6);
        printf("%.0f %.0f %.0f\n", millions / best[WRITTEN], millions / best[READ], size * millions / best[READ_BY_ALL]);
        OK(MPI_File_delete(argv[1], MPI_INFO_NULL));
    }
    free(whole);
    MPI_Info_free(&info);
    MPI_Finalize();
    return 0;
}
