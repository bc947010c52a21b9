/*
 * What the files of the shim share. The shim defines every MPI_File_* function, with both its names, for an MPI: files
 * on Starfish go to the core (starfish_mpi_io.h), all others to whoever is next, the MPI itself or a profiler.
 */
#ifndef STARFISH_SHIM_H
#define STARFISH_SHIM_H

#include <stdatomic.h>

#include <mpi.h>
#include <starfish_mpi_io.h>

/* In these mpi.h they are macros. */
#undef MPI_File_f2c
#undef MPI_File_c2f
#undef PMPI_File_f2c
#undef PMPI_File_c2f

#define HIDDEN __attribute__((visibility("hidden")))

/* How data lie in a file. */
enum representation { NATIVE, INTERNAL, EXTERNAL32, UNKNOWN };

/* Elements of a type in memory. */
struct elements {
    /* Where they begin; of a run its first byte of data. */
    char *first;
    MPI_Count count;
    MPI_Datatype type;
    MPI_Count size;
    MPI_Aint extent;
    enum representation representation;
    int is_run;
    /* Whether the type is made here, and to be let go. */
    int is_own;
};

/* A call that has begun, and the memory that it is of. */
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
    /* The split call under way, if there is one: the name of its end. */
    const char *split;
    struct transfer split_transfer;
    /* How many requests are under way. */
    atomic_int requests;
    /* A file of the MPI's own, which keeps the error handler of this one. */
    MPI_File surrogate;
    int has_surrogate;
};

#define UNPACK(...) __VA_ARGS__

/* Defines a function with both its names. Its body knows by `next` under which it was called. */
#define DEFINE_AS(returned, name, parameters, arguments)                                     \
    static returned do_##name(const char *next, UNPACK parameters);                          \
    returned MPI_##name(UNPACK parameters) { return do_##name("MPI_" #name, UNPACK arguments); }  \
    returned PMPI_##name(UNPACK parameters) { return do_##name("PMPI_" #name, UNPACK arguments); } \
    static returned do_##name(const char *next, UNPACK parameters)

#define DEFINE(name, parameters, arguments) DEFINE_AS(int, name, parameters, arguments)

/* The function that is next of this name. */
#define NEXT(name) ((__typeof__(&PMPI_##name))starfish_shim_next(next))

/* The function of the MPI itself. */
#define REAL(name) ((__typeof__(&PMPI_##name))starfish_shim_next("PMPI_" #name))

/* handles.c */
HIDDEN void *starfish_shim_next(const char *name);
HIDDEN struct our_file *starfish_shim_find(MPI_File handle);
HIDDEN int starfish_shim_enter(struct our_file *file);
HIDDEN void starfish_shim_leave(struct our_file *file);

/* errors.c */
/* Raises an error of the core, if it is one, and returns its code; `file` is NULL if none is open. */
HIDDEN int starfish_shim_fail(struct our_file *file, int class);
/* The same of a code of the MPI. */
HIDDEN int starfish_shim_raise(struct our_file *file, int code);
HIDDEN int starfish_shim_take_default(struct our_file *file);
HIDDEN void starfish_shim_close_surrogate(struct our_file *file);

/* types.c */
HIDDEN starfish_mpi_type *starfish_shim_flatten(MPI_Datatype type);
/* Whether the data of so many elements, one next to the other, are one run of bytes, and where that begins. */
HIDDEN int starfish_shim_is_run(MPI_Datatype type, MPI_Count count, MPI_Aint *first);
/* Whether it has as many bytes in external32 as in memory. */
HIDDEN int starfish_shim_is_alike(MPI_Datatype type);
HIDDEN MPI_Datatype starfish_shim_keep(MPI_Datatype type);
HIDDEN void starfish_shim_let_go(MPI_Datatype *type);

/* memory.c: what the file has of a program's memory. Classes of errors are the core's. */
HIDDEN int starfish_shim_read(struct our_file *file, int place, int together, MPI_Offset offset, void *buffer,
                              MPI_Count count, MPI_Datatype type, size_t *moved);
HIDDEN int starfish_shim_write(struct our_file *file, int place, int together, MPI_Offset offset, const void *buffer,
                               MPI_Count count, MPI_Datatype type, size_t *moved);
HIDDEN int starfish_shim_begin(struct our_file *file, int writes, int place, int together, MPI_Offset offset,
                               const void *buffer, MPI_Count count, MPI_Datatype type, struct transfer *transfer);
/* Waits for a call that has begun, and has the memory filled if it reads. */
HIDDEN int starfish_shim_end(struct transfer *transfer, size_t *moved);

/* requests.c */
HIDDEN void starfish_shim_set_status(MPI_Status *status, size_t bytes);
/* Makes a request of a call that has begun. */
HIDDEN int starfish_shim_request(struct our_file *file, const struct transfer *transfer, MPI_Request *request);
/* Waits for all requests of a file. */
HIDDEN void starfish_shim_settle(struct our_file *file);

#endif
