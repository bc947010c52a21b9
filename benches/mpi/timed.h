/*
 * Time measurements of collective operations, for the benchmarks.
 */
#ifndef BENCHES_MPI_TIMED_H
#define BENCHES_MPI_TIMED_H

#include <mpi.h>
#include <time.h>

/* Waits until a request is complete: sleeps, and tests the request every millisecond. MPI_Wait would keep a processor busy: if
   there are more processes than processors, waiting processes would slow down those that still run the timed operation. */
static void wait_asleep(MPI_Request request)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    int over = 0;
    while (MPI_Test(&request, &over, MPI_STATUS_IGNORE), !over) {
        nanosleep(&pause, NULL);
    }
}

/* Waits until all processes are ready, and returns the time of this process. */
static double begin_together(void)
{
    MPI_Request all;
    MPI_Ibarrier(MPI_COMM_WORLD, &all);
    wait_asleep(all);
    return MPI_Wtime();
}

/* Returns the longest of the times of all processes. Collective, so a call between two timed steps would disturb the second. */
static double longest(double own)
{
    double of_all;
    MPI_Request all;
    MPI_Iallreduce(&own, &of_all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, &all);
    wait_asleep(all);
    return of_all;
}

#endif
