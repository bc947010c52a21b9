/* All functions that read or write. */

#include "shim.h"

/* Reads or writes. Only reading changes `buffer`. */
static int move_now(struct our_file *file, int writes, int place, int together, MPI_Offset offset, const void *buffer,
                    MPI_Count count, MPI_Datatype type, MPI_Status *status)
{
    size_t moved;
    int class = writes ? starfish_shim_write(file, place, together, offset, buffer, count, type, &moved)
                       : starfish_shim_read(file, place, together, offset, (void *)buffer, count, type, &moved);
    starfish_shim_set_status(status, moved);
    return starfish_shim_fail(file, class);
}

static int move_requested(struct our_file *file, int writes, int place, int together, MPI_Offset offset,
                          const void *buffer, MPI_Count count, MPI_Datatype type, MPI_Request *request)
{
    struct transfer transfer;
    *request = MPI_REQUEST_NULL;
    int class = starfish_shim_begin(file, writes, place, together, offset, buffer, count, type, &transfer);
    return class ? starfish_shim_fail(file, class)
                 : starfish_shim_raise(file, starfish_shim_request(file, &transfer, request));
}

/* Split calls. */

static int move_begun(struct our_file *file, const char *end, int writes, int place, MPI_Offset offset,
                      const void *buffer, MPI_Count count, MPI_Datatype type)
{
    if (file->split) {
        return starfish_shim_raise(file, MPI_ERR_OTHER);
    }
    int class = starfish_shim_begin(file, writes, place, 1, offset, buffer, count, type, &file->split_transfer);
    file->split = class ? NULL : end;
    return starfish_shim_fail(file, class);
}

static int move_ended(struct our_file *file, const char *end, MPI_Status *status)
{
    size_t moved;
    if (file->split != end) {
        return starfish_shim_raise(file, MPI_ERR_OTHER);
    }
    file->split = NULL;
    int class = starfish_shim_end(&file->split_transfer, &moved);
    starfish_shim_set_status(status, moved);
    return starfish_shim_fail(file, class);
}

/* The functions, each with counts of type int and, from MPI 4 on, also of type MPI_Count. */

#define NOW(name, writes, place, together, memory, counted)                                                   \
    DEFINE(name, (MPI_File fh, memory buffer, counted count, MPI_Datatype type, MPI_Status * status),            \
           (fh, buffer, count, type, status))                                                                    \
    {                                                                                                            \
        struct our_file *file = starfish_shim_find(fh);                                                          \
        return file ? move_now(file, writes, place, together, 0, buffer, count, type, status)                    \
                    : NEXT(name)(fh, buffer, count, type, status);                                               \
    }

#define NOW_AT(name, writes, together, memory, counted)                                                       \
    DEFINE(name,                                                                                                 \
           (MPI_File fh, MPI_Offset offset, memory buffer, counted count, MPI_Datatype type, MPI_Status * status), \
           (fh, offset, buffer, count, type, status))                                                            \
    {                                                                                                            \
        struct our_file *file = starfish_shim_find(fh);                                                          \
        return file ? move_now(file, writes, STARFISH_MPI_AT, together, offset, buffer, count, type, status)     \
                    : NEXT(name)(fh, offset, buffer, count, type, status);                                       \
    }

#define REQUESTED(name, writes, place, together, memory, counted)                                             \
    DEFINE(name, (MPI_File fh, memory buffer, counted count, MPI_Datatype type, MPI_Request * request),          \
           (fh, buffer, count, type, request))                                                                   \
    {                                                                                                            \
        struct our_file *file = starfish_shim_find(fh);                                                          \
        return file ? move_requested(file, writes, place, together, 0, buffer, count, type, request)             \
                    : NEXT(name)(fh, buffer, count, type, request);                                              \
    }

#define REQUESTED_AT(name, writes, together, memory, counted)                                                 \
    DEFINE(name,                                                                                                 \
           (MPI_File fh, MPI_Offset offset, memory buffer, counted count, MPI_Datatype type,                     \
            MPI_Request * request),                                                                              \
           (fh, offset, buffer, count, type, request))                                                           \
    {                                                                                                            \
        struct our_file *file = starfish_shim_find(fh);                                                          \
        return file ? move_requested(file, writes, STARFISH_MPI_AT, together, offset, buffer, count, type, request) \
                    : NEXT(name)(fh, offset, buffer, count, type, request);                                      \
    }

#define BEGUN(name, end, writes, place, memory, counted)                                                      \
    DEFINE(name, (MPI_File fh, memory buffer, counted count, MPI_Datatype type), (fh, buffer, count, type))      \
    {                                                                                                            \
        struct our_file *file = starfish_shim_find(fh);                                                          \
        return file ? move_begun(file, end, writes, place, 0, buffer, count, type)                               \
                    : NEXT(name)(fh, buffer, count, type);                                                       \
    }

#define BEGUN_AT(name, end, writes, memory, counted)                                                          \
    DEFINE(name, (MPI_File fh, MPI_Offset offset, memory buffer, counted count, MPI_Datatype type),              \
           (fh, offset, buffer, count, type))                                                                    \
    {                                                                                                            \
        struct our_file *file = starfish_shim_find(fh);                                                          \
        return file ? move_begun(file, end, writes, STARFISH_MPI_AT, offset, buffer, count, type)                \
                    : NEXT(name)(fh, offset, buffer, count, type);                                               \
    }

#define ENDED(name, end, memory)                                                                              \
    DEFINE(name, (MPI_File fh, memory buffer, MPI_Status * status), (fh, buffer, status))                        \
    {                                                                                                            \
        struct our_file *file = starfish_shim_find(fh);                                                          \
        return file ? move_ended(file, end, status) : NEXT(name)(fh, buffer, status);                            \
    }

static const char READ_AT_ALL[] = "read_at_all", READ_ALL[] = "read_all", READ_ORDERED[] = "read_ordered";
static const char WRITE_AT_ALL[] = "write_at_all", WRITE_ALL[] = "write_all", WRITE_ORDERED[] = "write_ordered";

typedef void *into;
typedef const void *from;

ENDED(File_read_at_all_end, READ_AT_ALL, into)
ENDED(File_read_all_end, READ_ALL, into)
ENDED(File_read_ordered_end, READ_ORDERED, into)
ENDED(File_write_at_all_end, WRITE_AT_ALL, from)
ENDED(File_write_all_end, WRITE_ALL, from)
ENDED(File_write_ordered_end, WRITE_ORDERED, from)

/* Defines all functions that move data: `suffix` ends their names, and `counted` is the type of their counts. */
#define ALL(suffix, counted)                                                          \
    NOW_AT(File_read_at##suffix, 0, 0, into, counted)                                    \
    NOW_AT(File_read_at_all##suffix, 0, 1, into, counted)                                \
    NOW_AT(File_write_at##suffix, 1, 0, from, counted)                                   \
    NOW_AT(File_write_at_all##suffix, 1, 1, from, counted)                               \
    NOW(File_read##suffix, 0, STARFISH_MPI_OWN, 0, into, counted)                        \
    NOW(File_read_all##suffix, 0, STARFISH_MPI_OWN, 1, into, counted)                    \
    NOW(File_write##suffix, 1, STARFISH_MPI_OWN, 0, from, counted)                       \
    NOW(File_write_all##suffix, 1, STARFISH_MPI_OWN, 1, from, counted)                   \
    NOW(File_read_shared##suffix, 0, STARFISH_MPI_SHARED, 0, into, counted)              \
    NOW(File_write_shared##suffix, 1, STARFISH_MPI_SHARED, 0, from, counted)             \
    NOW(File_read_ordered##suffix, 0, STARFISH_MPI_ORDERED, 1, into, counted)            \
    NOW(File_write_ordered##suffix, 1, STARFISH_MPI_ORDERED, 1, from, counted)           \
    REQUESTED_AT(File_iread_at##suffix, 0, 0, into, counted)                             \
    REQUESTED_AT(File_iread_at_all##suffix, 0, 1, into, counted)                         \
    REQUESTED_AT(File_iwrite_at##suffix, 1, 0, from, counted)                            \
    REQUESTED_AT(File_iwrite_at_all##suffix, 1, 1, from, counted)                        \
    REQUESTED(File_iread##suffix, 0, STARFISH_MPI_OWN, 0, into, counted)                 \
    REQUESTED(File_iread_all##suffix, 0, STARFISH_MPI_OWN, 1, into, counted)             \
    REQUESTED(File_iwrite##suffix, 1, STARFISH_MPI_OWN, 0, from, counted)                \
    REQUESTED(File_iwrite_all##suffix, 1, STARFISH_MPI_OWN, 1, from, counted)            \
    REQUESTED(File_iread_shared##suffix, 0, STARFISH_MPI_SHARED, 0, into, counted)       \
    REQUESTED(File_iwrite_shared##suffix, 1, STARFISH_MPI_SHARED, 0, from, counted)      \
    BEGUN_AT(File_read_at_all_begin##suffix, READ_AT_ALL, 0, into, counted)              \
    BEGUN_AT(File_write_at_all_begin##suffix, WRITE_AT_ALL, 1, from, counted)            \
    BEGUN(File_read_all_begin##suffix, READ_ALL, 0, STARFISH_MPI_OWN, into, counted)     \
    BEGUN(File_write_all_begin##suffix, WRITE_ALL, 1, STARFISH_MPI_OWN, from, counted)   \
    BEGUN(File_read_ordered_begin##suffix, READ_ORDERED, 0, STARFISH_MPI_ORDERED, into, counted) \
    BEGUN(File_write_ordered_begin##suffix, WRITE_ORDERED, 1, STARFISH_MPI_ORDERED, from, counted)

ALL(, int)
#if MPI_VERSION >= 4
ALL(_c, MPI_Count)
#endif
