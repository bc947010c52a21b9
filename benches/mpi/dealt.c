/*
 * Measures collective writes and reads of a two-dimensional array of records, distributed cyclically in both dimensions.
 *
 *   dealt NAME RECORD MIB ROUNDS [KEY=VALUE ...]
 *
 * In each of ROUNDS rounds, all processes write the array of MIB MiB, reopen the file, read the array and check it. Prints
 * the best rates for the whole array in millions of bytes per second: writing until the call returns, writing with
 * MPI_File_sync, and reading. KEY=VALUE are MPI hints.
 */
#include <mpi.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAM "dealt"
#include "checked.h"
#include "timed.h"

/* Returns the byte at a position in the part of a process, which differs in each round. */
static unsigned char byte_at(int rank, long place, int round)
{
    return (unsigned char)(place * 31 + place / 4093 + rank * 7 + round * 13 + 1);
}

int main(int argc, char **argv)
{
    int rank, size, processes[2] = {0, 0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 5) {
        fprintf(stderr, "dealt NAME RECORD MIB ROUNDS [KEY=VALUE ...]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    char *name = argv[1];
    int record = atoi(argv[2]), rounds = atoi(argv[4]);
    MPI_Dims_create(size, 2, processes);
    /* MPI_Dims_create puts the larger number first. Use it for the columns, so that adjacent records belong to different
       processes, even with two processes. */
    int more = processes[0];
    processes[0] = processes[1];
    processes[1] = more;
    /* Make the array as square as possible, with equal numbers of records for all processes. */
    long records = (long)atoi(argv[3]) * 1048576 / record, rows = (long)sqrt((double)records);
    rows -= rows % processes[0];
    long columns = records / rows;
    columns -= columns % processes[1];
    double megabytes = (double)rows * columns * record / 1e6;

    MPI_Info hints;
    MPI_Info_create(&hints);
    for (int i = 5; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        if (value) {
            *value = 0;
            MPI_Info_set(hints, argv[i], value + 1);
        }
    }
    MPI_Datatype one, dealt;
    int lengths[2] = {(int)rows, (int)columns};
    int how[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_CYCLIC};
    int arguments[2] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
    MPI_Type_contiguous(record, MPI_BYTE, &one);
    MPI_Type_commit(&one);
    OK(MPI_Type_create_darray(size, rank, 2, lengths, how, arguments, processes, MPI_ORDER_C, one, &dealt));
    MPI_Type_commit(&dealt);
    int bytes;
    MPI_Type_size(dealt, &bytes);
    unsigned char *data = malloc((size_t)bytes + 1);

    enum { WRITTEN, SYNCED, READ, STEPS };
    double best[STEPS] = {1e9, 1e9, 1e9};
    for (int round = 0; round < rounds; round++) {
        MPI_File file;
        MPI_Status status;
        for (long i = 0; i < bytes; i++) {
            data[i] = byte_at(rank, i, round);
        }
        OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, hints, &file));
        OK(MPI_File_set_view(file, 0, one, dealt, "native", hints));
        double took[STEPS], start = begin_together();
        OK(MPI_File_write_all(file, data, bytes / record, one, &status));
        took[WRITTEN] = MPI_Wtime() - start;
        OK(MPI_File_sync(file));
        took[SYNCED] = MPI_Wtime() - start;
        OK(MPI_File_close(&file));

        memset(data, 0, (size_t)bytes);
        OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, hints, &file));
        OK(MPI_File_set_view(file, 0, one, dealt, "native", hints));
        start = begin_together();
        OK(MPI_File_read_all(file, data, bytes / record, one, &status));
        took[READ] = MPI_Wtime() - start;
        for (int step = 0; step < STEPS; step++) {
            double of_all = longest(took[step]);
            best[step] = of_all < best[step] ? of_all : best[step];
        }
        for (long i = 0; i < bytes; i++) {
            if (data[i] != byte_at(rank, i, round)) {
                fprintf(stderr, "dealt: process %d: byte %ld differs from the written byte\n", rank, i);
                MPI_Abort(MPI_COMM_WORLD, 3);
            }
        }
        OK(MPI_File_close(&file));
    }
    MPI_Type_free(&dealt);
    MPI_Type_free(&one);
    MPI_Info_free(&hints);
    if (rank == 0) {
        printf("%.1f %.1f %.1f\n", megabytes / best[WRITTEN], megabytes / best[SYNCED], megabytes / best[READ]);
    }
    MPI_Finalize();
    return 0;
}
