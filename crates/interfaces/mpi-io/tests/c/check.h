/* Common functions of the test programs, which abort all processes at the first failed check. */
#ifndef CHECK_H
#define CHECK_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

/* Converts a file to an integer handle (of Fortran, or of the standard ABI) and back. */
static inline MPI_File renumbered(MPI_File file)
{
#ifdef MPI_ABI_VERSION
    return MPI_File_fromint(MPI_File_toint(file));
#else
    return MPI_File_f2c(MPI_File_c2f(file));
#endif
}

#define CHECK(is_so)                                                                                 \
    do {                                                                                             \
        if (!(is_so)) {                                                                              \
            fprintf(stderr, "%s:%d: process %d of %d: %s\n", __FILE__, __LINE__, rank, size, #is_so); \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                            \
        }                                                                                            \
    } while (0)

#define OK(call) CHECK((call) == MPI_SUCCESS)

/* Returns the expected byte at an offset of a file. */
static inline unsigned char at(long long offset)
{
    return (unsigned char)(offset * 31 + (offset >> 8) * 7 + (offset >> 16) + 1);
}

static inline int class_of(int code)
{
    int class;
    MPI_Error_class(code, &class);
    return class;
}

#define FAILS(call, expected)                                                                              \
    do {                                                                                                   \
        int class_found = class_of(call);                                                                  \
        if (class_found != (expected)) {                                                                   \
            char text_found[MPI_MAX_ERROR_STRING];                                                         \
            int length_found;                                                                              \
            MPI_Error_string(class_found, text_found, &length_found);                                      \
            fprintf(stderr, "%s:%d: process %d: %s: %s\n", __FILE__, __LINE__, rank, #call, text_found);     \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                  \
        }                                                                                                  \
    } while (0)

static inline void begin(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

static inline int end(void)
{
    MPI_Finalize();
    return 0;
}

#endif
