/* Opens, closes and deletes files; views, file pointers, sizes and hints. */

#define _GNU_SOURCE
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim.h"

/* Returns the keys and values of an MPI_Info, alternating and ending with NULL; NULL if there are none. */
static char **hints_of(MPI_Info info)
{
    int keys = 0;
    if (info == MPI_INFO_NULL || PMPI_Info_get_nkeys(info, &keys) != MPI_SUCCESS) {
        return NULL;
    }
    char **hints = calloc(2 * (size_t)keys + 1, sizeof *hints);
    size_t filled = 0;
    for (int i = 0; hints && i < keys; i++) {
        char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL + 1];
        int is_there = 0;
        PMPI_Info_get_nthkey(info, i, key);
        PMPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &is_there);
        if (is_there) {
            hints[filled] = strdup(key);
            hints[filled + 1] = strdup(value);
            filled += 2;
        }
    }
    return hints;
}

static void free_hints(char **hints)
{
    for (char **hint = hints; hint && *hint; hint++) {
        free(*hint);
    }
    free(hints);
}

/* Returns the bits of the core for an MPI access mode; 0 unless the mode has exactly one of RDONLY, WRONLY and RDWR. */
static int mode_of(int amode)
{
    static const struct { int mpi, core; } bits[] = {
        {MPI_MODE_CREATE, STARFISH_MPI_CREATES},           {MPI_MODE_EXCL, STARFISH_MPI_EXCLUSIVE},
        {MPI_MODE_DELETE_ON_CLOSE, STARFISH_MPI_DELETES},  {MPI_MODE_APPEND, STARFISH_MPI_APPENDS},
        {MPI_MODE_SEQUENTIAL, STARFISH_MPI_SEQUENTIAL},
    };
    int mode = 0;
    switch (amode & (MPI_MODE_RDONLY | MPI_MODE_WRONLY | MPI_MODE_RDWR)) {
    case MPI_MODE_RDONLY: mode = STARFISH_MPI_READS; break;
    case MPI_MODE_WRONLY: mode = STARFISH_MPI_WRITES; break;
    case MPI_MODE_RDWR: mode = STARFISH_MPI_READS | STARFISH_MPI_WRITES; break;
    default: return 0;
    }
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
        mode |= amode & bits[i].mpi ? bits[i].core : 0;
    }
    return mode;
}

/* Waits for a collective MPI operation. Meanwhile yields the processor to other threads, whose work the other processes
   may be waiting for. */
static void await(MPI_Request request)
{
    int is_done = 0;
    while (PMPI_Test(&request, &is_done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !is_done) {
        sched_yield();
    }
}

/* Message from the first process to the others in a collective open. */
struct told {
    int class;
    char group[STARFISH_MPI_NAME_BYTES];
    char hints[STARFISH_MPI_HINT_FILE_BYTES];
};

/* Connects all processes to the agents at the same time. The first process broadcasts the name of the group and the
   hints of ROMIO's hint file, which need not exist on the hosts of the others. */
static int reach_agents(MPI_Comm comm, int rank, const char *name, struct told *told)
{
    int class = starfish_mpi_connect(name);
    if (rank == 0) {
        told->class = class ? class : starfish_mpi_draw_name(told->group);
        starfish_mpi_hint_file(told->hints);
    }
    MPI_Request telling;
    PMPI_Ibcast(told, sizeof *told, MPI_BYTE, 0, comm, &telling);
    await(telling);
    if (told->class) {
        return told->class;
    }
    starfish_mpi_note_hints(told->hints);
    return class;
}

/* Prints an error that all processes know of, if this process is the one to print it. Returns only after that process
   has printed it, since a process that continues may end the program. */
static int fail_together(MPI_Comm comm, int class)
{
    MPI_Request telling;
    starfish_mpi_tell_error();
    PMPI_Ibarrier(comm, &telling);
    await(telling);
    return class;
}

/* Agrees on success: if the open fails in any process, or if the modes differ, it fails in all. The first process in
   which it failed prints its own message. */
static int agree(MPI_Comm comm, int rank, int class, int amode)
{
    int own[] = {class, amode, -amode, class ? -rank : INT_MIN}, all[4];
    MPI_Request agreeing;
    PMPI_Iallreduce(own, all, 4, MPI_INT, MPI_MAX, comm, &agreeing);
    await(agreeing);
    if (all[0]) {
        if (all[3] != -rank) {
            class = starfish_mpi_note_error(all[0], "the open failed in another process, which reports the reason");
        }
        return fail_together(comm, class);
    }
    if (all[1] == -all[2]) {
        return 0;
    }
    return fail_together(comm, starfish_mpi_note_error(STARFISH_MPI_NOT_SAME, "processes passed different modes"));
}

/* Lets the MPI library make progress with messages, by a call without other effect. */
static void move_on(void)
{
    int is_there;
    PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &is_there, MPI_STATUS_IGNORE);
}

/* After MPI_Init: passes to the core the rank of this process in MPI_COMM_WORLD, and the function that makes MPI
   progress. */
static void tell_process(void)
{
    int is_initialized = 0, rank, size;
    if (PMPI_Initialized(&is_initialized) == MPI_SUCCESS && is_initialized) {
        PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
        PMPI_Comm_size(MPI_COMM_WORLD, &size);
        starfish_mpi_process((uint32_t)rank, (uint32_t)size);
        starfish_mpi_progress(move_on);
    }
}

static int open_ours(MPI_Comm comm, const char *name, int amode, MPI_Info info, struct our_file *file)
{
    struct told told = {0};
    int rank, size;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    int class = agree(comm, rank, reach_agents(comm, rank, name, &told), amode);
    if (!class) {
        tell_process();
        char **hints = hints_of(info);
        class = starfish_mpi_open(name, mode_of(amode), told.group, (uint32_t)rank, (uint32_t)size,
                                  (const char *const *)hints, &file->core);
        free_hints(hints);
    }
    return class;
}

/* Finds out if `name` is on Starfish in all processes. Fails if it is in some only, for example if one host lacks the
   mount. */
static int find_owner(MPI_Comm comm, const char *name, int *is_ours)
{
    int rank, size;
    *is_ours = starfish_mpi_is_ours(name);
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    if (size == 1) {
        return 0;
    }
    /* True if the name is ours in any process; true if it is not in any; the first process in which it is not
       (negated). */
    int own[] = {*is_ours, !*is_ours, *is_ours ? INT_MIN : -rank}, all[3];
    MPI_Request agreeing;
    PMPI_Iallreduce(own, all, 3, MPI_INT, MPI_MAX, comm, &agreeing);
    await(agreeing);
    if (!all[0] || !all[1]) {
        return 0;
    }
    char host[MPI_MAX_PROCESSOR_NAME] = "", why[2 * MPI_MAX_PROCESSOR_NAME + 4096];
    int without = -all[2], length;
    if (rank == without) {
        PMPI_Get_processor_name(host, &length);
    }
    PMPI_Ibcast(host, sizeof host, MPI_CHAR, without, comm, &agreeing);
    await(agreeing);
    snprintf(why, sizeof why, "%s is on Starfish in other processes, but not in process %d on %s: mount it there",
             name, without, host);
    return fail_together(comm, rank == 0 ? starfish_mpi_note_own_error(STARFISH_MPI_BAD_FILE, why)
                                         : starfish_mpi_note_error(STARFISH_MPI_BAD_FILE, why));
}

DEFINE(File_open, (MPI_Comm comm, const char *name, int amode, MPI_Info info, MPI_File *fh),
       (comm, name, amode, info, fh))
{
    int is_between = 0, is_ours = 0;
    if (!name || comm == MPI_COMM_NULL || PMPI_Comm_test_inter(comm, &is_between) != MPI_SUCCESS || is_between) {
        /* The MPI library rejects these arguments. */
        return NEXT(File_open)(comm, name, amode, info, fh);
    }
    int unlike = find_owner(comm, name, &is_ours);
    if (unlike) {
        *fh = MPI_FILE_NULL;
        return starfish_shim_fail(NULL, unlike);
    }
    if (!is_ours) {
        return NEXT(File_open)(comm, name, amode, info, fh);
    }
    *fh = MPI_FILE_NULL;
    struct our_file *file = calloc(1, sizeof *file);
    if (!file || starfish_shim_enter(file)) {
        free(file);
        return starfish_shim_raise(NULL, MPI_ERR_NO_MEM);
    }
    int class = open_ours(comm, name, amode, info, file);
    if (class) {
        starfish_shim_leave(file);
        free(file);
        return starfish_shim_fail(NULL, class);
    }
    PMPI_Comm_group(comm, &file->group);
    file->amode = amode;
    file->etype = file->filetype = MPI_BYTE;
    *fh = (MPI_File)file;
    return starfish_shim_take_default(file);
}

DEFINE(File_close, (MPI_File * fh), (fh))
{
    struct our_file *file = starfish_shim_find(*fh);
    if (!file) {
        return NEXT(File_close)(fh);
    }
    if (file->split) {
        return starfish_shim_raise(file, MPI_ERR_OTHER);
    }
    starfish_shim_settle(file);
    int code = starfish_shim_fail(file, starfish_mpi_close(file->core));
    starfish_shim_leave(file);
    starfish_shim_close_surrogate(file);
    starfish_mpi_file_free(file->core);
    PMPI_Group_free(&file->group);
    starfish_shim_let_go(&file->etype);
    starfish_shim_let_go(&file->filetype);
    free(file);
    *fh = MPI_FILE_NULL;
    return code;
}

DEFINE(File_delete, (const char *name, MPI_Info info), (name, info))
{
    if (!name || !starfish_mpi_is_ours(name)) {
        return NEXT(File_delete)(name, info);
    }
    return starfish_shim_fail(NULL, starfish_mpi_delete(name));
}

/* Defines a function that only calls the core. */
#define ASKED(name, parameters, arguments, call)                                        \
    DEFINE(name, parameters, arguments)                                                    \
    {                                                                                      \
        struct our_file *file = starfish_shim_find(fh);                                    \
        return file ? starfish_shim_fail(file, call) : NEXT(name) arguments;                \
    }

/* The core has 64-bit offsets, so MPI_Offset must have 64 bits. */
_Static_assert(sizeof(MPI_Offset) == sizeof(int64_t), "offsets");

static int whence_of(int whence)
{
    return whence == MPI_SEEK_SET ? STARFISH_MPI_FROM_START
           : whence == MPI_SEEK_CUR ? STARFISH_MPI_FROM_POSITION
           : whence == MPI_SEEK_END ? STARFISH_MPI_FROM_END
                                    : -1;
}

/* Waits for all requests of the file. Returns the file. */
static struct our_file *settled(struct our_file *file)
{
    starfish_shim_settle(file);
    return file;
}

ASKED(File_set_size, (MPI_File fh, MPI_Offset size), (fh, size),
      starfish_mpi_set_size(settled(file)->core, size, 0))
ASKED(File_preallocate, (MPI_File fh, MPI_Offset size), (fh, size),
      starfish_mpi_set_size(settled(file)->core, size, 1))
ASKED(File_get_size, (MPI_File fh, MPI_Offset *size), (fh, size), starfish_mpi_size(file->core, (int64_t *)size))
ASKED(File_sync, (MPI_File fh), (fh), starfish_mpi_sync(settled(file)->core))
ASKED(File_seek, (MPI_File fh, MPI_Offset offset, int whence), (fh, offset, whence),
      starfish_mpi_seek(file->core, offset, whence_of(whence)))
ASKED(File_seek_shared, (MPI_File fh, MPI_Offset offset, int whence), (fh, offset, whence),
      starfish_mpi_seek_shared(file->core, offset, whence_of(whence)))
ASKED(File_get_position, (MPI_File fh, MPI_Offset *offset), (fh, offset),
      starfish_mpi_position(file->core, (int64_t *)offset))
ASKED(File_get_position_shared, (MPI_File fh, MPI_Offset *offset), (fh, offset),
      starfish_mpi_shared_position(file->core, (int64_t *)offset))
ASKED(File_get_byte_offset, (MPI_File fh, MPI_Offset offset, MPI_Offset *bytes), (fh, offset, bytes),
      starfish_mpi_byte_offset(file->core, offset, (int64_t *)bytes))

DEFINE(File_set_atomicity, (MPI_File fh, int flag), (fh, flag))
{
    struct our_file *file = starfish_shim_find(fh);
    if (!file) {
        return NEXT(File_set_atomicity)(fh, flag);
    }
    int class = starfish_mpi_set_atomic(settled(file)->core, flag != 0);
    file->atomic = class ? file->atomic : flag != 0;
    return starfish_shim_fail(file, class);
}

DEFINE(File_get_atomicity, (MPI_File fh, int *flag), (fh, flag))
{
    struct our_file *file = starfish_shim_find(fh);
    if (!file) {
        return NEXT(File_get_atomicity)(fh, flag);
    }
    *flag = file->atomic;
    return MPI_SUCCESS;
}

DEFINE(File_get_amode, (MPI_File fh, int *amode), (fh, amode))
{
    struct our_file *file = starfish_shim_find(fh);
    if (!file) {
        return NEXT(File_get_amode)(fh, amode);
    }
    *amode = file->amode;
    return MPI_SUCCESS;
}

DEFINE(File_get_group, (MPI_File fh, MPI_Group *group), (fh, group))
{
    struct our_file *file = starfish_shim_find(fh);
    if (!file) {
        return NEXT(File_get_group)(fh, group);
    }
    /* Excluding 0 ranks returns a new handle on the same group. */
    return PMPI_Group_excl(file->group, 0, NULL, group);
}

DEFINE(File_set_info, (MPI_File fh, MPI_Info info), (fh, info))
{
    struct our_file *file = starfish_shim_find(fh);
    if (!file) {
        return NEXT(File_set_info)(fh, info);
    }
    char **hints = hints_of(info);
    int class = starfish_mpi_set_hints(file->core, (const char *const *)hints);
    free_hints(hints);
    return starfish_shim_fail(file, class);
}

DEFINE(File_get_info, (MPI_File fh, MPI_Info *info), (fh, info))
{
    struct our_file *file = starfish_shim_find(fh);
    if (!file) {
        return NEXT(File_get_info)(fh, info);
    }
    char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL + 1];
    int code = PMPI_Info_create(info);
    for (size_t i = 0; code == MPI_SUCCESS; i++) {
        if (!starfish_mpi_hint(file->core, i, key, sizeof key, value, sizeof value)) {
            break;
        }
        code = PMPI_Info_set(*info, key, value);
    }
    return starfish_shim_raise(file, code);
}

/* Views. */

static int set_view(struct our_file *file, MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype,
                    enum representation representation)
{
    MPI_Count unit;
    if (etype == MPI_DATATYPE_NULL || filetype == MPI_DATATYPE_NULL ||
        PMPI_Type_size_x(etype, &unit) != MPI_SUCCESS) {
        return starfish_mpi_note_error(STARFISH_MPI_TYPE, "view: a datatype is unknown");
    }
    if (representation == EXTERNAL32 && !(starfish_shim_is_alike(etype) && starfish_shim_is_alike(filetype))) {
        return starfish_mpi_note_error(STARFISH_MPI_UNSUPPORTED, "view: a datatype has another size in external32");
    }
    int class = 0;
    int64_t at = displacement;
    if (displacement == MPI_DISPLACEMENT_CURRENT) {
        class = starfish_mpi_current_displacement(file->core, &at);
    }
    if (!class) {
        starfish_mpi_type *type = starfish_shim_flatten(filetype);
        class = type ? starfish_mpi_set_view(file->core, at, unit, type) : STARFISH_MPI_TYPE;
        starfish_mpi_type_free(type);
    }
    if (!class) {
        MPI_Datatype of_units = starfish_shim_keep(etype), of_file = starfish_shim_keep(filetype);
        starfish_shim_let_go(&file->etype);
        starfish_shim_let_go(&file->filetype);
        file->etype = of_units;
        file->filetype = of_file;
        file->displacement = at;
        file->representation = representation;
    }
    return class;
}

static const char *const representations[] = {"native", "internal", "external32"};

static enum representation representation_of(const char *name)
{
    int found = NATIVE;
    while (found < UNKNOWN && (!name || strcmp(name, representations[found]))) {
        found++;
    }
    return found;
}

DEFINE(File_set_view,
       (MPI_File fh, MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, const char *representation,
        MPI_Info info),
       (fh, displacement, etype, filetype, representation, info))
{
    struct our_file *file = starfish_shim_find(fh);
    if (!file) {
        return NEXT(File_set_view)(fh, displacement, etype, filetype, representation, info);
    }
    enum representation wanted = representation_of(representation);
    if (wanted == UNKNOWN) {
        return starfish_shim_raise(file, MPI_ERR_UNSUPPORTED_DATAREP);
    }
    int class = set_view(settled(file), displacement, etype, filetype, wanted);
    if (!class) {
        char **hints = hints_of(info);
        starfish_mpi_set_view_hints(file->core, (const char *const *)hints);
        free_hints(hints);
    }
    return starfish_shim_fail(file, class);
}

DEFINE(File_get_view,
       (MPI_File fh, MPI_Offset *displacement, MPI_Datatype *etype, MPI_Datatype *filetype, char *representation),
       (fh, displacement, etype, filetype, representation))
{
    struct our_file *file = starfish_shim_find(fh);
    if (!file) {
        return NEXT(File_get_view)(fh, displacement, etype, filetype, representation);
    }
    *displacement = file->displacement;
    *etype = starfish_shim_keep(file->etype);
    *filetype = starfish_shim_keep(file->filetype);
    strcpy(representation, representations[file->representation]);
    return MPI_SUCCESS;
}

/* Returns the extent of an element in the file. Gaps have the same size as in memory in all representations, as in
   views. */
static int extent_in_file(struct our_file *file, MPI_Datatype type, MPI_Aint *extent)
{
    MPI_Aint lower, packed;
    MPI_Count size;
    int code = PMPI_Type_get_extent(type, &lower, extent);
    if (code == MPI_SUCCESS && file->representation == EXTERNAL32) {
        PMPI_Type_size_x(type, &size);
        code = PMPI_Pack_external_size("external32", 1, type, &packed);
        /* For a type whose parts have other sizes in external32, MPI does not define where the gaps are. */
        int is_alike = packed == size, is_run = *extent == size;
        *extent = is_alike ? *extent : packed;
        code = code == MPI_SUCCESS && !is_alike && !is_run ? MPI_ERR_UNSUPPORTED_OPERATION : code;
    }
    return starfish_shim_raise(file, code);
}

DEFINE(File_get_type_extent, (MPI_File fh, MPI_Datatype type, MPI_Aint *extent), (fh, type, extent))
{
    struct our_file *file = starfish_shim_find(fh);
    return file ? extent_in_file(file, type, extent) : NEXT(File_get_type_extent)(fh, type, extent);
}

#if MPI_VERSION >= 4
DEFINE(File_get_type_extent_c, (MPI_File fh, MPI_Datatype type, MPI_Count *extent), (fh, type, extent))
{
    struct our_file *file = starfish_shim_find(fh);
    MPI_Aint found = 0;
    if (!file) {
        return NEXT(File_get_type_extent_c)(fh, type, extent);
    }
    int code = extent_in_file(file, type, &found);
    *extent = found;
    return code;
}
#endif
