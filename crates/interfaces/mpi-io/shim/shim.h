/*
 * Declarations shared by the files of the shim. The shim defines every MPI_File_* function of an MPI library under both
 * its names (MPI_, PMPI_). Calls for files on Starfish go to the core (starfish_mpi_io.h), all others to the next
 * library that defines the function: the MPI library or a profiler.
 */
#ifndef STARFISH_SHIM_H
#define STARFISH_SHIM_H

#include <stdatomic.h>

#include <mpi.h>
#include <starfish_mpi_io.h>

/* Some mpi.h define these functions as macros. */
#undef MPI_File_f2c
#undef MPI_File_c2f
#undef PMPI_File_f2c
#undef PMPI_File_c2f

#define HIDDEN __attribute__((visibility("hidden")))

/* Data representation of a file. */
enum representation { NATIVE, INTERNAL, EXTERNAL32, UNKNOWN };

/* Elements of a datatype in memory. */
struct elements {
    /* Address of the elements; of a run of bytes, the address of its first byte of data. */
    char *first;
    MPI_Count count;
    MPI_Datatype type;
    MPI_Count size;
    MPI_Aint extent;
    enum representation representation;
    int is_run;
    /* True if the shim has made the type and must free it. */
    int is_own;
};

/* A call that has begun, and the memory that it reads into or writes from. */
struct transfer {
    starfish_mpi_call *call;
    struct elements of;
    size_t bytes;
    int writes;
};

/* An open file of ours; a pointer to it is the program's MPI_File. */
struct our_file {
    starfish_mpi_file *core;
    MPI_Group group;
    int amode;
    int atomic;
    /* The view. */
    MPI_Offset displacement;
    MPI_Datatype etype, filetype;
    enum representation representation;
    /* The name of the function that ends the split collective call in progress; NULL if there is none. */
    const char *split;
    struct transfer split_transfer;
    /* Number of incomplete requests. */
    atomic_int requests;
    /* A file of the MPI library, which holds the error handler of this file. */
    MPI_File surrogate;
    int has_surrogate;
};

#define UNPACK(...) __VA_ARGS__

/* Defines a function under both its names. `next` is the name under which its body was called. */
#define DEFINE_AS(returned, name, parameters, arguments)                                     \
    static returned do_##name(const char *next, UNPACK parameters);                          \
    returned MPI_##name(UNPACK parameters) { return do_##name("MPI_" #name, UNPACK arguments); }  \
    returned PMPI_##name(UNPACK parameters) { return do_##name("PMPI_" #name, UNPACK arguments); } \
    static returned do_##name(const char *next, UNPACK parameters)

#define DEFINE(name, parameters, arguments) DEFINE_AS(int, name, parameters, arguments)

/* The function of this name in the next library. */
#define NEXT(name) ((__typeof__(&PMPI_##name))starfish_shim_next(next))

/* The function of the MPI library itself, past all profilers. */
#define REAL(name) ((__typeof__(&PMPI_##name))starfish_shim_next("PMPI_" #name))

/* handles.c */
HIDDEN void *starfish_shim_next(const char *name);
HIDDEN struct our_file *starfish_shim_find(MPI_File handle);
HIDDEN int starfish_shim_enter(struct our_file *file);
HIDDEN void starfish_shim_leave(struct our_file *file);

/* errors.c */
/* Reports an error class of the core to the error handler, unless the class is 0. Returns its MPI error code. `file` is
   NULL if no file is open. */
HIDDEN int starfish_shim_fail(struct our_file *file, int class);
/* Reports an MPI error code in the same way. */
HIDDEN int starfish_shim_raise(struct our_file *file, int code);
HIDDEN int starfish_shim_take_default(struct our_file *file);
HIDDEN void starfish_shim_close_surrogate(struct our_file *file);

/* types.c */
HIDDEN starfish_mpi_type *starfish_shim_flatten(MPI_Datatype type);
/* Returns true if the data of `count` adjacent elements are one run of bytes; `first` is then the displacement of the
   run. */
HIDDEN int starfish_shim_is_run(MPI_Datatype type, MPI_Count count, MPI_Aint *first);
/* Returns true if the type has the same number of bytes in external32 as in memory. */
HIDDEN int starfish_shim_is_alike(MPI_Datatype type);
HIDDEN MPI_Datatype starfish_shim_keep(MPI_Datatype type);
HIDDEN void starfish_shim_let_go(MPI_Datatype *type);

/* memory.c: transfers between a file and the memory of the program. Functions return error classes of the core. */
HIDDEN int starfish_shim_read(struct our_file *file, int place, int together, MPI_Offset offset, void *buffer,
                              MPI_Count count, MPI_Datatype type, size_t *moved);
HIDDEN int starfish_shim_write(struct our_file *file, int place, int together, MPI_Offset offset, const void *buffer,
                               MPI_Count count, MPI_Datatype type, size_t *moved);
HIDDEN int starfish_shim_begin(struct our_file *file, int writes, int place, int together, MPI_Offset offset,
                               const void *buffer, MPI_Count count, MPI_Datatype type, struct transfer *transfer);
/* Waits for a call that has begun. If the call reads, fills the memory. */
HIDDEN int starfish_shim_end(struct transfer *transfer, size_t *moved);

/* requests.c */
HIDDEN void starfish_shim_set_status(MPI_Status *status, size_t bytes);
/* Creates a request for a call that has begun. */
HIDDEN int starfish_shim_request(struct our_file *file, const struct transfer *transfer, MPI_Request *request);
/* Waits for all requests of a file. */
HIDDEN void starfish_shim_settle(struct our_file *file);

#endif
