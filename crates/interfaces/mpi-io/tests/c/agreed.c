/* Processes must agree on the hints that choose the method, on whether a file is on Starfish, and on its removal. */
#include <unistd.h>

#include "check.h"

static MPI_Info hint(const char *key, const char *value)
{
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, key, value);
    return info;
}

/* The first process passes another hint. No process blocks: the open fails, or the hint is rejected. */
static void other_hints(const char *key, const char *value)
{
    MPI_File file;
    MPI_Info usual = hint("starfish_method", "auto"), other = hint(key, value), own = rank ? usual : other;
    char byte = 'x';
    const char *name = "starfish:mpi/hints";
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR;
    FAILS(MPI_File_open(MPI_COMM_WORLD, name, mode, own, &file), MPI_ERR_NOT_SAME);
    CHECK(file == MPI_FILE_NULL);
    OK(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file));
    if (strcmp(value, "write-cached") != 0) {
        FAILS(MPI_File_set_info(file, own), MPI_ERR_NOT_SAME);
    }
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", own));
    OK(MPI_File_write_at_all(file, rank, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_read_at_all(file, rank, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE));
    /* All processes may change to the same other hint. */
    if (strcmp(value, "write-cached") != 0) {
        OK(MPI_File_set_info(file, other));
    }
    OK(MPI_File_write_at_all(file, rank, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
    MPI_Info_free(&usual);
    MPI_Info_free(&other);
}

/* The last process names a local file, as if its host had not mounted Starfish. */
static void other_owners(const char *directory)
{
    MPI_File file;
    char local[4096];
    snprintf(local, sizeof local, "%s/local", directory);
    const char *name = rank == size - 1 ? local : "starfish:mpi/owned";
    FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file), MPI_ERR_BAD_FILE);
    CHECK(file == MPI_FILE_NULL && access(local, F_OK) != 0);
}

/* After a close that deletes the file has returned, any process can create another file of the same name. */
static void deletes(void)
{
    MPI_File file;
    const char *name = "starfish:mpi/gone";
    int mode = MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR;
    for (int round = 0; round < 20; round++) {
        OK(MPI_File_open(MPI_COMM_WORLD, name, mode | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
        OK(MPI_File_close(&file));
        if (rank == size - 1) {
            OK(MPI_File_open(MPI_COMM_SELF, name, mode, MPI_INFO_NULL, &file));
            OK(MPI_File_close(&file));
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == size - 1) {
            OK(MPI_File_delete(name, MPI_INFO_NULL));
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static int closings;

/* The handler of an error in a close can still use the file. */
static void handle(MPI_File *file, int *code, ...)
{
    MPI_Offset position = -1;
    int amode = 0;
    if (class_of(*code) == MPI_ERR_IO && MPI_File_get_position(*file, &position) == MPI_SUCCESS) {
        MPI_File_get_amode(*file, &amode);
        closings += position == 3 && (amode & MPI_MODE_RDWR);
    }
}

static void handled_closings(void)
{
    MPI_File file;
    MPI_Errhandler handler;
    char bytes[3] = "abc";
    OK(MPI_File_open(MPI_COMM_WORLD, "starfish:mpi/handled", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_write(file, bytes, 3, MPI_BYTE, MPI_STATUS_IGNORE));
    FAILS((rank ? MPI_File_set_size(file, 0) : MPI_File_sync(file)), MPI_ERR_IO);
    MPI_File_create_errhandler(handle, &handler);
    OK(MPI_File_set_errhandler(file, handler));
    FAILS(MPI_File_close(&file), MPI_ERR_IO);
    CHECK(closings == 1);
    MPI_Errhandler_free(&handler);
}

static void representations(void)
{
    MPI_File file;
    MPI_Datatype gaps, found[2], longs;
    MPI_Aint extent, packed;
    MPI_Offset displacement;
    char representation[MPI_MAX_DATAREP_STRING];
    OK(MPI_File_open(MPI_COMM_WORLD, "starfish:mpi/represented", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "internal", MPI_INFO_NULL));
    OK(MPI_File_get_view(file, &displacement, &found[0], &found[1], representation));
    CHECK(strcmp(representation, "internal") == 0);
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL));
    MPI_Type_vector(3, 1, 2, MPI_INT, &gaps);
    MPI_Type_commit(&gaps);
    OK(MPI_File_get_type_extent(file, gaps, &extent));
    CHECK(extent == 5 * sizeof(int));
    OK(MPI_File_get_type_extent(file, MPI_DOUBLE, &extent));
    CHECK(extent == sizeof(double));
    MPI_Type_vector(3, 1, 2, MPI_LONG, &longs);
    MPI_Type_commit(&longs);
    MPI_Pack_external_size("external32", 1, MPI_LONG, &packed);
    OK(MPI_File_get_type_extent(file, MPI_LONG, &extent));
    CHECK(extent == packed);
    /* A long has half as many bytes in external32, except in Open MPI. */
    if (packed != sizeof(long)) {
        FAILS(MPI_File_get_type_extent(file, longs, &extent), MPI_ERR_UNSUPPORTED_OPERATION);
        FAILS(MPI_File_set_view(file, 0, MPI_LONG, MPI_LONG, "external32", MPI_INFO_NULL),
              MPI_ERR_UNSUPPORTED_OPERATION);
        FAILS(MPI_File_set_view(file, 0, MPI_BYTE, longs, "external32", MPI_INFO_NULL), MPI_ERR_UNSUPPORTED_OPERATION);
        OK(MPI_File_get_view(file, &displacement, &found[0], &found[1], representation));
        CHECK(found[0] == MPI_INT && strcmp(representation, "external32") == 0);
    }
    MPI_Type_free(&gaps);
    MPI_Type_free(&longs);
    OK(MPI_File_close(&file));
}

/* The argument: a directory of this computer. */
int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(argc == 2);
    alarm(40);
    representations();
    deletes();
    handled_closings();
    other_owners(argv[1]);
    other_hints("romio_cb_write", "disable");
    other_hints("romio_cb_read", "disable");
    other_hints("starfish_method", "independent");
    other_hints("starfish_method", "write-cached");
    return end();
}
