/*
 * Error check for the benchmarks: if an MPI call fails, prints the call and the reason, and ends the program.
 *
 * PROGRAM is the name of the program in the message.
 */
#ifndef BENCHES_MPI_CHECKED_H
#define BENCHES_MPI_CHECKED_H

#include <mpi.h>
#include <stdio.h>

#define OK(call) \
    do { \
        int error = (call); \
        if (error != MPI_SUCCESS) { \
            char text[MPI_MAX_ERROR_STRING]; \
            int length; \
            MPI_Error_string(error, text, &length); \
            fprintf(stderr, PROGRAM ": %s: %s\n", #call, text); \
            MPI_Abort(MPI_COMM_WORLD, 1); \
        } \
    } while (0)

#endif
