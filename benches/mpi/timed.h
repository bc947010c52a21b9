/*
 * How long something takes that all processes do together, for the benchmarks.
 */
#ifndef BENCHES_MPI_TIMED_H
#define BENCHES_MPI_TIMED_H

#include <mpi.h>
#include <time.h>

/* Waits until a request is over, asleep but for a look every millisecond. An MPI waits by keeping a processor busy: where
   there are more processes than processors, who waits so would take them from those who are still at what is timed. */
static void wait_asleep(MPI_Request request)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    int over = 0;
    while (MPI_Test(&request, &over, MPI_STATUS_IGNORE), !over) {
        nanosleep(&pause, NULL);
    }
}

/* The time of this process when all begin. */
static double begin_together(void)
{
    MPI_Request all;
    MPI_Ibarrier(MPI_COMM_WORLD, &all);
    wait_asleep(all);
    return MPI_Wtime();
}

/* The longest of the times that the processes took. It meets them all: taken between two steps it would be a part of the second. */
static double longest(double own)
{
    double of_all;
    MPI_Request all;
    MPI_Iallreduce(&own, &of_all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, &all);
    wait_asleep(all);
    return of_all;
}

#endif
