/*
 * Common code of the benchmarks of libraries over MPI-IO: a two-dimensional array of doubles, of which each process has a
 * stripe of columns, and time measurements. Each benchmark writes the array, flushes it to the disks and closes the file;
 * then it reopens the file, reads the array and checks it.
 */
#ifndef BENCHES_MPI_LIBRARIES_ARRAYS_H
#define BENCHES_MPI_LIBRARIES_ARRAYS_H

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "../timed.h"

struct array {
    long rows, columns;  /* of the whole array */
    long first, own;     /* first column and number of columns of this process */
    double *values;      /* part of this process, row by row */
};

/* Returns the part of this process in an array of MIB MiB, which is as square as possible. */
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

/* Returns the expected value at a position in the part, which differs in each round. */
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

/* Prints, in the first process, the best rates of writing and reading in millions of bytes per second. */
static void say(const struct array *part, double written, double read)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double megabytes = (double)part->rows * (double)part->columns * sizeof(double) / 1e6;
    if (rank == 0) printf("%.0f %.0f\n", megabytes / written, megabytes / read);
}

/* Writes the part of a process to a file, or reads it, and returns the time in seconds. */
typedef double move_array(const char *name, struct array *part, int writes);

/* Writes an array and reads it back ROUNDS times, and prints the rates. */
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
