/*
 * The interface of the core of MPI-IO on Starfish, for the shims that are preloaded before an MPI library. The core
 * does not use MPI, so one core serves all MPI libraries.
 *
 * Functions that return int return 0 or an error class, unless stated otherwise; starfish_mpi_tell_error() prints the
 * message. Offsets and sizes are in bytes. Only "units" count elementary types of the view.
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

/* Bits of the access mode of a file. */
enum starfish_mpi_mode {
    STARFISH_MPI_READS = 1,
    STARFISH_MPI_WRITES = 2,
    STARFISH_MPI_CREATES = 4,
    STARFISH_MPI_EXCLUSIVE = 8,
    STARFISH_MPI_DELETES = 16,
    STARFISH_MPI_APPENDS = 32,
    STARFISH_MPI_SEQUENTIAL = 64
};

/* Starting position of a call: an offset, the file pointer of this process, the shared pointer, or the shared pointer
   in the order of ranks. */
enum starfish_mpi_place {
    STARFISH_MPI_AT = 0,
    STARFISH_MPI_OWN = 1,
    STARFISH_MPI_SHARED = 2,
    STARFISH_MPI_ORDERED = 3
};

/* Origin of a seek. */
enum starfish_mpi_whence {
    STARFISH_MPI_FROM_START = 0,
    STARFISH_MPI_FROM_POSITION = 1,
    STARFISH_MPI_FROM_END = 2
};

/* Distribution of a dimension of an array. STARFISH_MPI_BLOCKS with length 0: one block per process, as long as needed.
   */
enum starfish_mpi_dealing {
    STARFISH_MPI_WHOLE = 0,
    STARFISH_MPI_BLOCKS = 1,
    STARFISH_MPI_CYCLIC = 2
};

/* Length of the name of a group in bytes, with the final 0. */
#define STARFISH_MPI_NAME_BYTES 33

/* Largest size of a hint file in bytes, with the final 0; ROMIO has the same limit. */
#define STARFISH_MPI_HINT_FILE_BYTES 4096

typedef struct starfish_mpi_file starfish_mpi_file;
typedef struct starfish_mpi_type starfish_mpi_type;
typedef struct starfish_mpi_call starfish_mpi_call;

/* Prints the last error of this thread on standard error if its class says too little and no other process prints it,
   or if STARFISH_MPI_REPORT requests all errors. */
void starfish_mpi_tell_error(void);

/* Notes an error that the shim or another process has found. Only an error of class UNSUPPORTED will be printed.
   Returns the class. */
int starfish_mpi_note_error(int class, const char *why);

/* Notes an error that this process must print, whatever its class. Returns the class. */
int starfish_mpi_note_own_error(int class, const char *why);

/* Files by name. */

/* Returns 1 if a name denotes a file on Starfish, otherwise 0. */
int starfish_mpi_is_ours(const char *name);

/* Connects this process to the agents, unless it is connected. */
int starfish_mpi_connect(const char *name);

/* Sets the rank of this process and the number of processes, for recordings. To be called before the first open. */
void starfish_mpi_process(uint32_t rank, uint32_t size);

/* Sets a function that makes the MPI library progress with messages. To be called before the first open. While a call
   of the core waits for other processes, it calls `progress` repeatedly in the same thread, since the other processes
   may wait for messages of this one. */
void starfish_mpi_progress(void (*progress)(void));

/* Draws a unique name for a group. */
int starfish_mpi_draw_name(char name[STARFISH_MPI_NAME_BYTES]);

/* Returns the contents of the file named in ROMIO_HINTS, or of /etc/romio-hints; an empty string if neither exists. */
void starfish_mpi_hint_file(char lines[STARFISH_MPI_HINT_FILE_BYTES]);

/* Sets the contents of the hint file that the first process has read, for files that this thread opens from now on. */
void starfish_mpi_note_hints(const char *lines);

/* Opens a file with all processes of a group. `hints` alternates keys and values and ends with NULL. */
int starfish_mpi_open(const char *name, int mode, const char *group, uint32_t rank, uint32_t size,
                      const char *const *hints, starfish_mpi_file **file);

int starfish_mpi_delete(const char *name);

/* Open files: collective calls. All processes of the group must pass the same arguments. */

/* Closes a file. Afterwards only starfish_mpi_file_free() may be called with it. */
int starfish_mpi_close(starfish_mpi_file *file);
int starfish_mpi_sync(starfish_mpi_file *file);
int starfish_mpi_set_size(starfish_mpi_file *file, int64_t bytes, int only_longer);
int starfish_mpi_set_atomic(starfish_mpi_file *file, int atomic);
int starfish_mpi_seek_shared(starfish_mpi_file *file, int64_t units, int whence);
/* Sets hints, which alternate keys and values. Fails without effect if the processes would use different methods. */
int starfish_mpi_set_hints(starfish_mpi_file *file, const char *const *hints);

/* Open files: independent calls. */

void starfish_mpi_file_free(starfish_mpi_file *file);
int starfish_mpi_size(starfish_mpi_file *file, int64_t *bytes);
int starfish_mpi_set_view(starfish_mpi_file *file, int64_t displacement, int64_t unit_bytes,
                          const starfish_mpi_type *type);
/* Returns the byte offset of the shared pointer of a sequential file. */
int starfish_mpi_current_displacement(starfish_mpi_file *file, int64_t *displacement);
int starfish_mpi_seek(starfish_mpi_file *file, int64_t units, int whence);
int starfish_mpi_position(starfish_mpi_file *file, int64_t *units);
int starfish_mpi_shared_position(starfish_mpi_file *file, int64_t *units);
int starfish_mpi_byte_offset(starfish_mpi_file *file, int64_t units, int64_t *offset);
/* Sets hints that are passed with a view. They do not change the method. */
void starfish_mpi_set_view_hints(starfish_mpi_file *file, const char *const *hints);
/* Copies the hint of this index, truncated to `key_bytes` and `value_bytes`. Returns 0 if there is none, otherwise 1.
   */
int starfish_mpi_hint(starfish_mpi_file *file, size_t index, char *key, size_t key_bytes, char *value,
                      size_t value_bytes);

/* Read and write calls; collective if `together`. `moved` is the number of bytes read. */

int starfish_mpi_read(starfish_mpi_file *file, int place, int together, int64_t units, void *into, size_t bytes,
                      size_t *moved);
int starfish_mpi_write(starfish_mpi_file *file, int place, int together, int64_t units, const void *from,
                       size_t bytes);

/* Calls whose elements are packed into memory of the core, or unpacked from it. The core calls the packing function in
   the calling thread, with `of`, the memory, and the number of bytes to write or that were read. The function returns
   0, or the class of an error that it has noted. If packing fails in a collective call, the process takes part with 0
   bytes. */

typedef int (*starfish_mpi_packing)(const void *of, void *packed, size_t bytes);

int starfish_mpi_read_packed(starfish_mpi_file *file, int place, int together, int64_t units,
                             starfish_mpi_packing unpack, const void *of, size_t bytes, size_t *moved);
int starfish_mpi_write_packed(starfish_mpi_file *file, int place, int together, int64_t units,
                              starfish_mpi_packing pack, const void *of, size_t bytes);

/* Nonblocking calls. If such a call cannot begin, it returns the error at once and `call` stays unset. Data to write
   are copied. */

int starfish_mpi_begin_read(starfish_mpi_file *file, int place, int together, int64_t units, size_t bytes,
                            starfish_mpi_call **call);
int starfish_mpi_begin_write(starfish_mpi_file *file, int place, int together, int64_t units, const void *from,
                             size_t bytes, starfish_mpi_call **call);
int starfish_mpi_begin_write_packed(starfish_mpi_file *file, int place, int together, int64_t units,
                                    starfish_mpi_packing pack, const void *of, size_t bytes,
                                    starfish_mpi_call **call);

/* Returns 1 if a call has completed or failed, so that ending it will not block, otherwise 0. */
int starfish_mpi_is_done(const starfish_mpi_call *call);

/* Waits for a call and frees it. The bytes read are copied to `into`, which has the requested number of bytes. `moved`
   is the number of bytes read or written. */
int starfish_mpi_end(starfish_mpi_call *call, void *into, size_t bytes, size_t *moved);

/* Waits for a read whose elements are to be unpacked, and frees it. */
int starfish_mpi_end_packed(starfish_mpi_call *call, starfish_mpi_packing unpack, const void *of, size_t *moved);

/* Frees a call without waiting for it. The call continues, and its result is discarded. */
void starfish_mpi_let_go(starfish_mpi_call *call);

/* Types of a file. Each function returns a new type, or NULL if the datatype is invalid or a component is NULL. */

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

/* Returns the run of data that begins at data byte `position` of a type: its displacement and its length, which is 0 at
   the end. */
int starfish_mpi_type_run(const starfish_mpi_type *type, int64_t position, int64_t *displacement, int64_t *bytes);

#ifdef __cplusplus
}
#endif

#endif
