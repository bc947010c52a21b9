/*
 * The core of MPI-IO on Starfish, as the shims in front of an MPI call it. It knows no MPI, so one library serves all.
 *
 * Functions that return int return 0, or the class of an error; starfish_mpi_tell_error() tells the rest. Offsets and
 * sizes are in bytes unless it is said: "units" are elementary types of the view.
 */
#ifndef STARFISH_MPI_IO_H
#define STARFISH_MPI_IO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Classes of errors. */
enum starfish_mpi_class {
    STARFISH_MPI_ARGUMENT = 1,
    STARFISH_MPI_TYPE = 2,
    STARFISH_MPI_MODE = 3,
    STARFISH_MPI_UNSUPPORTED = 4,
    STARFISH_MPI_NOT_SAME = 5,
    STARFISH_MPI_BAD_FILE = 6,
    STARFISH_MPI_NO_SUCH_FILE = 7,
    STARFISH_MPI_EXISTS = 8,
    STARFISH_MPI_IN_USE = 9,
    STARFISH_MPI_READ_ONLY = 10,
    STARFISH_MPI_ACCESS = 11,
    STARFISH_MPI_NO_SPACE = 12,
    STARFISH_MPI_IO = 13,
    STARFISH_MPI_COUNT = 14,
    STARFISH_MPI_NO_MEMORY = 15
};

/* How a file is opened: bits. */
enum starfish_mpi_mode {
    STARFISH_MPI_READS = 1,
    STARFISH_MPI_WRITES = 2,
    STARFISH_MPI_CREATES = 4,
    STARFISH_MPI_EXCLUSIVE = 8,
    STARFISH_MPI_DELETES = 16,
    STARFISH_MPI_APPENDS = 32,
    STARFISH_MPI_SEQUENTIAL = 64
};

/* Where a call begins: at an offset, where this process is, where the shared pointer is, the same in order of ranks. */
enum starfish_mpi_place {
    STARFISH_MPI_AT = 0,
    STARFISH_MPI_OWN = 1,
    STARFISH_MPI_SHARED = 2,
    STARFISH_MPI_ORDERED = 3
};

/* From where a pointer is moved. */
enum starfish_mpi_whence {
    STARFISH_MPI_FROM_START = 0,
    STARFISH_MPI_FROM_POSITION = 1,
    STARFISH_MPI_FROM_END = 2
};

/* How a side of an array is dealt out; the blocks of STARFISH_MPI_BLOCKS are as long as needed if their length is 0. */
enum starfish_mpi_dealing {
    STARFISH_MPI_WHOLE = 0,
    STARFISH_MPI_BLOCKS = 1,
    STARFISH_MPI_CYCLIC = 2
};

/* Bytes of the name of a group, with the 0 at its end. */
#define STARFISH_MPI_NAME_BYTES 33

/* Bytes of a file of hints, with the 0 at its end; ROMIO reads as many. */
#define STARFISH_MPI_HINT_FILE_BYTES 4096

typedef struct starfish_mpi_file starfish_mpi_file;
typedef struct starfish_mpi_type starfish_mpi_type;
typedef struct starfish_mpi_call starfish_mpi_call;

/* Tells the last error in this thread on standard error, if its class does not and no other process does, or if
   STARFISH_MPI_REPORT asks for all. */
void starfish_mpi_tell_error(void);

/* Notes an error that the caller has found, or another process: its class tells it, but for what is not supported.
   Returns the class. */
int starfish_mpi_note_error(int class, const char *why);

/* The same of an error that this process tells, whatever its class. */
int starfish_mpi_note_own_error(int class, const char *why);

/* Files by name. */

/* Whether a name means a file on Starfish: 1 or 0. */
int starfish_mpi_is_ours(const char *name);

/* Connects this process to the agents, if it is not yet. */
int starfish_mpi_connect(const char *name);

/* Says which of how many processes this is, before it opens its first file: for what is recorded. */
void starfish_mpi_process(uint32_t rank, uint32_t size);

/* Says how the MPI moves its messages on, before the first file is opened. Whoever waits for other processes calls that now
   and then, in the thread that has called the core: they may wait for messages of this one. */
void starfish_mpi_progress(void (*progress)(void));

/* Draws a name for a group that nobody else has. */
int starfish_mpi_draw_name(char name[STARFISH_MPI_NAME_BYTES]);

/* What stands in the file that ROMIO_HINTS names, or in /etc/romio-hints: nothing if there is neither. */
void starfish_mpi_hint_file(char lines[STARFISH_MPI_HINT_FILE_BYTES]);

/* Says what stands there, as the first process has it: for files that this thread opens from now on. */
void starfish_mpi_note_hints(const char *lines);

/* Opens a file with all processes of a group. `hints` are keys and values in turn, with NULL at the end. */
int starfish_mpi_open(const char *name, int mode, const char *group, uint32_t rank, uint32_t size,
                      const char *const *hints, starfish_mpi_file **file);

int starfish_mpi_delete(const char *name);

/* Open files. All processes of the group call these, with the same arguments. */

/* Closes it; it is to be freed then, and no call but that does anything with it. */
int starfish_mpi_close(starfish_mpi_file *file);
int starfish_mpi_sync(starfish_mpi_file *file);
int starfish_mpi_set_size(starfish_mpi_file *file, int64_t bytes, int only_longer);
int starfish_mpi_set_atomic(starfish_mpi_file *file, int atomic);
int starfish_mpi_seek_shared(starfish_mpi_file *file, int64_t units, int whence);
/* Takes in hints, keys and values in turn; nothing, if the processes would not have their data go the same way. */
int starfish_mpi_set_hints(starfish_mpi_file *file, const char *const *hints);

/* Open files. Each process calls these for itself. */

void starfish_mpi_file_free(starfish_mpi_file *file);
int starfish_mpi_size(starfish_mpi_file *file, int64_t *bytes);
int starfish_mpi_set_view(starfish_mpi_file *file, int64_t displacement, int64_t unit_bytes,
                          const starfish_mpi_type *type);
/* The offset in the file where the shared pointer of a sequential file is. */
int starfish_mpi_current_displacement(starfish_mpi_file *file, int64_t *displacement);
int starfish_mpi_seek(starfish_mpi_file *file, int64_t units, int whence);
int starfish_mpi_position(starfish_mpi_file *file, int64_t *units);
int starfish_mpi_shared_position(starfish_mpi_file *file, int64_t *units);
int starfish_mpi_byte_offset(starfish_mpi_file *file, int64_t units, int64_t *offset);
/* Takes in hints that are given with a view: which way data go they do not change. */
void starfish_mpi_set_view_hints(starfish_mpi_file *file, const char *const *hints);
/* The hint of this index, cut to the room there is for it; 0 if there is none, otherwise 1. */
int starfish_mpi_hint(starfish_mpi_file *file, size_t index, char *key, size_t key_bytes, char *value,
                      size_t value_bytes);

/* Reading and writing, by all processes of the group if `together`. `moved` is how many bytes were read. */

int starfish_mpi_read(starfish_mpi_file *file, int place, int together, int64_t units, void *into, size_t bytes,
                      size_t *moved);
int starfish_mpi_write(starfish_mpi_file *file, int place, int together, int64_t units, const void *from,
                       size_t bytes);

/* The same of elements that are packed into memory of the core's, or unpacked from there. `packing` does that, in the
   thread that calls: it is handed `of`, the memory and its bytes, all that there are or as many as were read, and
   returns 0 or the class of an error that it has noted. Who cannot pack takes part with nothing, if all do. */

typedef int (*starfish_mpi_packing)(const void *of, void *packed, size_t bytes);

int starfish_mpi_read_packed(starfish_mpi_file *file, int place, int together, int64_t units,
                             starfish_mpi_packing unpack, const void *of, size_t bytes, size_t *moved);
int starfish_mpi_write_packed(starfish_mpi_file *file, int place, int together, int64_t units,
                              starfish_mpi_packing pack, const void *of, size_t bytes);

/* The same, begun for whoever does something else meanwhile. Whoever cannot take part is told at once, and there is no
   call then. What is written is copied. */

int starfish_mpi_begin_read(starfish_mpi_file *file, int place, int together, int64_t units, size_t bytes,
                            starfish_mpi_call **call);
int starfish_mpi_begin_write(starfish_mpi_file *file, int place, int together, int64_t units, const void *from,
                             size_t bytes, starfish_mpi_call **call);
int starfish_mpi_begin_write_packed(starfish_mpi_file *file, int place, int together, int64_t units,
                                    starfish_mpi_packing pack, const void *of, size_t bytes,
                                    starfish_mpi_call **call);

/* Whether a call has ended, well or not, and nobody has to wait for it: 1 or 0. */
int starfish_mpi_is_done(const starfish_mpi_call *call);

/* Waits for a call, and frees it. What was read goes into memory of so many bytes, as many as were asked for. `moved` is
   how many were moved. */
int starfish_mpi_end(starfish_mpi_call *call, void *into, size_t bytes, size_t *moved);

/* The same of a call that reads, whose elements are unpacked. */
int starfish_mpi_end_packed(starfish_mpi_call *call, starfish_mpi_packing unpack, const void *of, size_t *moved);

/* Frees a call without waiting for it: it goes on, and nobody is told what comes of it. */
void starfish_mpi_let_go(starfish_mpi_call *call);

/* Types of a file. Each function makes a new one; NULL if the datatype does not exist, or one of its parts is NULL. */

starfish_mpi_type *starfish_mpi_type_bytes(int64_t count);
starfish_mpi_type *starfish_mpi_type_contiguous(int64_t count, const starfish_mpi_type *type);
starfish_mpi_type *starfish_mpi_type_strided(int64_t count, int64_t block, int64_t stride,
                                             const starfish_mpi_type *type);
starfish_mpi_type *starfish_mpi_type_indexed(size_t count, const int64_t *blocks, const int64_t *displacements,
                                             const starfish_mpi_type *type);
starfish_mpi_type *starfish_mpi_type_struct(size_t count, const int64_t *blocks, const int64_t *displacements,
                                            const starfish_mpi_type *const *types);
starfish_mpi_type *starfish_mpi_type_resized(int64_t lower, int64_t extent, const starfish_mpi_type *type);
starfish_mpi_type *starfish_mpi_type_box(size_t sides, const int64_t *lengths, const int64_t *counts,
                                         const int64_t *firsts, int rows_first, const starfish_mpi_type *type);
starfish_mpi_type *starfish_mpi_type_dealt(size_t sides, const int64_t *lengths, const int64_t *dealings,
                                           const int64_t *blocks, const int64_t *processes, int64_t rank,
                                           int rows_first, const starfish_mpi_type *type);
void starfish_mpi_type_free(starfish_mpi_type *type);

/* The run of data that begins with the byte at `position` of the data of a type: its displacement, and its bytes;
   none at the end. */
int starfish_mpi_type_run(const starfish_mpi_type *type, int64_t position, int64_t *displacement, int64_t *bytes);

#ifdef __cplusplus
}
#endif

#endif
