/*
 * What the benchmarks have in common: a call of MPI that fails ends the program, with what it was and why.
 *
 * PROGRAM is the name by which it says so.
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
