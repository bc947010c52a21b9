/* Converts the memory of the program to bytes and back: a run of bytes is used in place, all else the MPI library
   packs. */

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "shim.h"

/* Largest number of bytes packed by one call: the older functions count in int. */
enum { PACKED_MAX = 1 << 30 };

/* Replaces a type with displacements from MPI_BOTTOM by one with displacements from its first byte of data: MPICH
   rejects the address 0. */
static int anchor(struct elements *of)
{
    MPI_Aint first, bytes;
    int one = 1;
    PMPI_Type_get_true_extent(of->type, &first, &bytes);
    MPI_Aint back = -first;
    if (PMPI_Type_create_hindexed(1, &one, &back, of->type, &of->type) != MPI_SUCCESS ||
        PMPI_Type_commit(&of->type) != MPI_SUCCESS) {
        return starfish_mpi_note_error(STARFISH_MPI_TYPE, "memory: cannot derive a type from this datatype");
    }
    of->first += first;
    of->is_own = 1;
    return 0;
}

static void forget(struct elements *of)
{
    if (of->is_own) {
        starfish_shim_let_go(&of->type);
    }
}

static int describe(struct elements *of, const struct our_file *file, const void *buffer, MPI_Count count,
                    MPI_Datatype type)
{
    MPI_Aint lower, first;
    if (count < 0) {
        return starfish_mpi_note_error(STARFISH_MPI_COUNT, "a count is negative");
    }
    if (type == MPI_DATATYPE_NULL || PMPI_Type_size_x(type, &of->size) != MPI_SUCCESS ||
        PMPI_Type_get_extent(type, &lower, &of->extent) != MPI_SUCCESS) {
        return starfish_mpi_note_error(STARFISH_MPI_TYPE, "memory: the datatype is unknown");
    }
    if (of->size < 0 || (of->size > 0 && count > (MPI_Count)(PTRDIFF_MAX / of->size))) {
        return starfish_mpi_note_error(STARFISH_MPI_ARGUMENT, "a count times its datatype exceeds all memory");
    }
    of->first = (char *)buffer;
    of->count = count;
    of->type = type;
    of->representation = file->representation;
    of->is_own = 0;
    of->is_run = file->representation != EXTERNAL32 && starfish_shim_is_run(type, count, &first);
    if (of->is_run) {
        of->first += first;
    } else if (of->size > PACKED_MAX) {
        return starfish_mpi_note_error(STARFISH_MPI_UNSUPPORTED,
                                       "a datatype in memory has gaps and exceeds 1 GiB of data: pass several smaller ones");
    }
    if (file->representation == EXTERNAL32 && !starfish_shim_is_alike(type)) {
        return starfish_mpi_note_error(STARFISH_MPI_UNSUPPORTED, "memory: the datatype has another size in external32");
    }
    return !of->is_run && buffer == MPI_BOTTOM ? anchor(of) : 0;
}

/* Packs `count` elements, beginning with element `from`, into `packed`, or unpacks them from `packed`. */
static int convert(const struct elements *of, int packs, MPI_Count from, int count, char *packed)
{
    char *memory = of->first + from * of->extent;
    MPI_Aint bytes = (MPI_Aint)(count * of->size), at = 0;
    int position = 0, code;
    if (of->representation == EXTERNAL32) {
        code = packs ? PMPI_Pack_external("external32", memory, count, of->type, packed, bytes, &at)
                     : PMPI_Unpack_external("external32", packed, bytes, &at, memory, count, of->type);
    } else {
        code = packs ? PMPI_Pack(memory, count, of->type, packed, (int)bytes, &position, MPI_COMM_SELF)
                     : PMPI_Unpack(packed, (int)bytes, &position, memory, count, of->type, MPI_COMM_SELF);
    }
    /* If the MPI library packs less than all bytes, report an error: no silent data loss. */
    int is_all = of->representation == EXTERNAL32 || position == (int)bytes;
    return code == MPI_SUCCESS && is_all ? 0 : starfish_mpi_note_error(STARFISH_MPI_TYPE, "MPI cannot pack it whole");
}

/* Packs or unpacks all whole elements within `bytes` bytes. */
static int convert_all(const struct elements *of, int packs, char *packed, size_t bytes)
{
    MPI_Count count = of->size ? (MPI_Count)bytes / of->size : 0, most = of->size ? PACKED_MAX / of->size : 1;
    int class = 0;
    for (MPI_Count done = 0; done < count && !class;) {
        int now = (int)(count - done < most ? count - done : most);
        now = now < 1 ? 1 : now;
        class = convert(of, packs, done, now, packed + done * of->size);
        done += now;
    }
    return class;
}

static int pack(const void *elements, void *packed, size_t bytes)
{
    return convert_all(elements, 1, packed, bytes);
}

/* Unpacks the bytes that were read, including those of an incomplete last element. */
static int unpack(const void *elements, void *packed, size_t bytes)
{
    const struct elements *of = elements;
    int class = convert_all(of, 0, packed, bytes);
    size_t rest = of->size ? bytes % (size_t)of->size : 0;
    if (class || !rest) {
        return class;
    }
    MPI_Count last = (MPI_Count)bytes / of->size;
    char *element = malloc((size_t)of->size);
    if (!element) {
        return starfish_mpi_note_error(STARFISH_MPI_NO_MEMORY, "not enough memory to pack the data");
    }
    class = convert(of, 1, last, 1, element);
    memcpy(element, (char *)packed + (bytes - rest), rest);
    class = class ? class : convert(of, 0, last, 1, element);
    free(element);
    return class;
}

/* Keeps the type of the memory valid even if the program frees it before the call has ended. */
static void keep(struct elements *of)
{
    if (!of->is_run && !of->is_own) {
        of->type = starfish_shim_keep(of->type);
        of->is_own = 1;
    }
}

/* A process that cannot take part in a collective call does so with 0 bytes, so that the others need not wait. */
static int give_up(struct our_file *file, int writes, int place, int together, MPI_Offset offset, int class)
{
    size_t moved = 0;
    if (together && writes) {
        starfish_mpi_write(file->core, place, together, offset, NULL, 0);
    } else if (together) {
        starfish_mpi_read(file->core, place, together, offset, NULL, 0, &moved);
    }
    return class;
}

int starfish_shim_read(struct our_file *file, int place, int together, MPI_Offset offset, void *buffer,
                       MPI_Count count, MPI_Datatype type, size_t *moved)
{
    struct elements of;
    *moved = 0;
    int class = describe(&of, file, buffer, count, type);
    if (class) {
        return give_up(file, 0, place, together, offset, class);
    }
    size_t bytes = (size_t)(of.count * of.size);
    if (of.is_run) {
        return starfish_mpi_read(file->core, place, together, offset, of.first, bytes, moved);
    }
    class = starfish_mpi_read_packed(file->core, place, together, offset, unpack, &of, bytes, moved);
    forget(&of);
    return class;
}

int starfish_shim_write(struct our_file *file, int place, int together, MPI_Offset offset, const void *buffer,
                        MPI_Count count, MPI_Datatype type, size_t *moved)
{
    struct elements of;
    *moved = 0;
    int class = describe(&of, file, buffer, count, type);
    if (class) {
        return give_up(file, 1, place, together, offset, class);
    }
    size_t bytes = (size_t)(of.count * of.size);
    if (of.is_run) {
        class = starfish_mpi_write(file->core, place, together, offset, of.first, bytes);
    } else {
        class = starfish_mpi_write_packed(file->core, place, together, offset, pack, &of, bytes);
        forget(&of);
    }
    *moved = class ? 0 : bytes;
    return class;
}

/* Nonblocking calls. */

/* Like `give_up`, without waiting for the other processes. */
static int give_up_begun(struct our_file *file, const struct transfer *transfer, int place, int together,
                         MPI_Offset offset, int class)
{
    starfish_mpi_call *call = NULL;
    if (together && transfer->writes) {
        starfish_mpi_begin_write(file->core, place, together, offset, NULL, 0, &call);
    } else if (together) {
        starfish_mpi_begin_read(file->core, place, together, offset, 0, &call);
    }
    if (call) {
        starfish_mpi_let_go(call);
    }
    return class;
}

static int begin_write(struct our_file *file, struct transfer *transfer, int place, int together, MPI_Offset offset)
{
    struct elements *of = &transfer->of;
    if (of->is_run) {
        return starfish_mpi_begin_write(file->core, place, together, offset, of->first, transfer->bytes,
                                        &transfer->call);
    }
    int class = starfish_mpi_begin_write_packed(file->core, place, together, offset, pack, of, transfer->bytes,
                                                &transfer->call);
    forget(of);
    return class;
}

static int begin_read(struct our_file *file, struct transfer *transfer, int place, int together, MPI_Offset offset)
{
    int class = starfish_mpi_begin_read(file->core, place, together, offset, transfer->bytes, &transfer->call);
    if (class) {
        forget(&transfer->of);
    } else {
        keep(&transfer->of);
    }
    return class;
}

int starfish_shim_begin(struct our_file *file, int writes, int place, int together, MPI_Offset offset,
                        const void *buffer, MPI_Count count, MPI_Datatype type, struct transfer *transfer)
{
    transfer->writes = writes;
    int class = describe(&transfer->of, file, buffer, count, type);
    if (class) {
        return give_up_begun(file, transfer, place, together, offset, class);
    }
    transfer->bytes = (size_t)(transfer->of.count * transfer->of.size);
    return (writes ? begin_write : begin_read)(file, transfer, place, together, offset);
}

int starfish_shim_end(struct transfer *transfer, size_t *moved)
{
    struct elements *of = &transfer->of;
    *moved = 0;
    if (transfer->writes || of->is_run) {
        return starfish_mpi_end(transfer->call, transfer->writes ? NULL : of->first,
                                transfer->writes ? 0 : transfer->bytes, moved);
    }
    int class = starfish_mpi_end_packed(transfer->call, unpack, of, moved);
    forget(of);
    return class;
}
