/*
 * How long something took, for the benchmarks: the seconds since `start` of the process that took longest.
 */
#ifndef BENCHES_MPI_TIMED_H
#define BENCHES_MPI_TIMED_H

#include <mpi.h>

static double since(double start)
{
    double own = MPI_Wtime() - start, longest;
    MPI_Allreduce(&own, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return longest;
}

#endif
