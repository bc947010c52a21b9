/*
 * How long something takes that all processes do together, for the benchmarks.
 */
#ifndef BENCHES_MPI_TIMED_H
#define BENCHES_MPI_TIMED_H

#include <mpi.h>
#include <time.h>

/* The time of this process when all begin. An MPI waits by keeping a processor busy: where there are more processes than
   processors, those that leave a barrier first would count the slices of time that the others wait in it. While they
   sleep, the others leave it, too. */
static double begin_together(void)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    MPI_Barrier(MPI_COMM_WORLD);
    nanosleep(&pause, NULL);
    return MPI_Wtime();
}

/* The longest of the times that the processes took. It meets them all: taken between two steps it would be a part of the second. */
static double longest(double own)
{
    double of_all;
    MPI_Allreduce(&own, &of_all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return of_all;
}

#endif
