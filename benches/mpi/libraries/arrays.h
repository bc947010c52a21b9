/*
 * An array of doubles of two dimensions of which each process has a stripe of columns, and how long something took: what
 * the benchmarks of libraries over MPI-IO have in common. Each writes the array, has it brought to the disks and closes its
 * file; then reads it in a file opened anew, and compares.
 */
#ifndef BENCHES_MPI_LIBRARIES_ARRAYS_H
#define BENCHES_MPI_LIBRARIES_ARRAYS_H

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "../timed.h"

struct array {
    long rows, columns;  /* of the whole */
    long first, own;     /* the first column of this process, and how many */
    double *values;      /* its part, row by row */
};

/* An array of so many MiB, as nearly square as it can be. */
static struct array part_of_array(int mib)
{
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    struct array part;
    part.rows = (long)sqrt((double)mib * 1048576 / sizeof(double));
    part.columns = part.rows - part.rows % size;
    part.own = part.columns / size;
    part.first = part.own * rank;
    part.values = malloc((size_t)(part.rows * part.own) * sizeof(double));
    return part;
}

/* The value that belongs at a place of the part, another one in each round. */
static double value_at(const struct array *part, long place, int round)
{
    return (double)(place / part->own * part->columns + part->first + place % part->own) + 0.25 * round;
}

static void fill(struct array *part, int round)
{
    for (long place = 0; place < part->rows * part->own; place++)
        part->values[place] = value_at(part, place, round);
}

static void compare(const struct array *part, int round)
{
    for (long place = 0; place < part->rows * part->own; place++)
        if (part->values[place] != value_at(part, place, round)) {
            fprintf(stderr, "a value that was read is wrong\n");
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
}

/* What the first process says: millions of bytes a second written and read, each in its shortest time. */
static void say(const struct array *part, double written, double read)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double megabytes = (double)part->rows * (double)part->columns * sizeof(double) / 1e6;
    if (rank == 0) printf("%.0f %.0f\n", megabytes / written, megabytes / read);
}

/* Moves the part of a process to a file or from it; how long that took. */
typedef double move_array(const char *name, struct array *part, int writes);

/* Writes an array and reads it back some times, and says how fast that was. */
static void measure(const char *name, int mib, int rounds, move_array *move)
{
    struct array part = part_of_array(mib);
    double written = 1e9, read = 1e9;
    for (int round = 0; round < rounds; round++) {
        fill(&part, round);
        written = fmin(written, move(name, &part, 1));
        fill(&part, -1);
        read = fmin(read, move(name, &part, 0));
        compare(&part, round);
    }
    say(&part, written, read);
    free(part.values);
}

#endif
