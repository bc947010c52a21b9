/* A call that exceeds a limit fails with the right error class, and the next call works. */
#include <limits.h>
#include <sys/mman.h>

#include "check.h"

/* Returns a type of `count` runs of bytes with irregular lengths and gaps. */
static MPI_Datatype irregular(int count, size_t *bytes)
{
    int *lengths = malloc((size_t)count * sizeof *lengths);
    MPI_Aint *displacements = malloc((size_t)count * sizeof *displacements), next = 0;
    MPI_Datatype type;
    CHECK(lengths && displacements);
    *bytes = 0;
    for (int i = 0; i < count; i++) {
        displacements[i] = next + 1 + i * 7919LL % 977;
        lengths[i] = 1 + (int)(i * 104729LL % 9);
        next = displacements[i] + lengths[i];
        *bytes += (size_t)lengths[i];
    }
    MPI_Type_create_hindexed(count, lengths, displacements, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    free(lengths);
    free(displacements);
    return type;
}

static MPI_File opened(const char *name)
{
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    return file;
}

/* The first process has `count` runs and the others few. All write and read collectively. */
static void runs(const char *name, int count, int is_refused)
{
    MPI_File file = opened(name);
    size_t bytes;
    MPI_Datatype type = irregular(rank == 0 ? count : 9, &bytes);
    unsigned char *mine = malloc(bytes), *back = malloc(bytes);
    CHECK(mine && back);
    for (size_t i = 0; i < bytes; i++) {
        mine[i] = at((long long)i);
    }
    OK(MPI_File_set_view(file, 0, MPI_BYTE, type, "native", MPI_INFO_NULL));
    if (is_refused) {
        FAILS(MPI_File_write_at_all(file, 0, mine, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE),
              MPI_ERR_UNSUPPORTED_OPERATION);
        FAILS(MPI_File_read_at_all(file, 0, back, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE),
              MPI_ERR_UNSUPPORTED_OPERATION);
        bytes = 9;
    }
    OK(MPI_File_write_at_all(file, 0, mine, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at_all(file, 0, back, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(memcmp(mine, back, bytes) == 0);
    free(mine);
    free(back);
    MPI_Type_free(&type);
    OK(MPI_File_close(&file));
}

/* The first process passes an element of more than 1 GiB with gaps in memory; no such memory exists, so the call must
   fail before it accesses any. */
static void element(const char *name)
{
    MPI_File file = opened(name);
    MPI_Datatype type;
    unsigned char one = (unsigned char)('a' + rank);
    MPI_Type_vector((1 << 28) + 1, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    if (rank == 0) {
        FAILS(MPI_File_write_at_all(file, 0, &one, 1, type, MPI_STATUS_IGNORE), MPI_ERR_UNSUPPORTED_OPERATION);
        FAILS(MPI_File_read_at_all(file, 0, &one, 1, type, MPI_STATUS_IGNORE), MPI_ERR_UNSUPPORTED_OPERATION);
    } else {
        OK(MPI_File_write_at_all(file, rank, &one, 1, MPI_BYTE, MPI_STATUS_IGNORE));
        OK(MPI_File_read_at_all(file, rank, &one, 1, MPI_BYTE, MPI_STATUS_IGNORE));
        CHECK(one == 'a' + rank);
    }
    MPI_Type_free(&type);
    OK(MPI_File_close(&file));
}

/* The first process passes so many elements with gaps that the packed data exceed all memory. The others do not block.
   */
static void too_many(const char *name)
{
    MPI_File file = opened(name);
    MPI_Datatype type;
    MPI_Request request;
    unsigned char one = (unsigned char)('a' + rank), back;
    MPI_Type_vector(1 << 27, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    if (rank == 0) {
        FAILS(MPI_File_write_at_all(file, 0, &one, INT_MAX, type, MPI_STATUS_IGNORE), MPI_ERR_NO_MEM);
        FAILS(MPI_File_iwrite_at_all(file, 0, &one, INT_MAX, type, &request), MPI_ERR_NO_MEM);
        CHECK(request == MPI_REQUEST_NULL);
    } else {
        OK(MPI_File_write_at_all(file, rank, &one, 1, MPI_BYTE, MPI_STATUS_IGNORE));
        OK(MPI_File_iwrite_at_all(file, size + rank, &one, 1, MPI_BYTE, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_File_read_at(file, size + rank, &back, 1, MPI_BYTE, MPI_STATUS_IGNORE));
        CHECK(back == one);
    }
    MPI_Type_free(&type);
    OK(MPI_File_close(&file));
}

/* An element of more than 1 GiB without gaps works. Its data begin 64 bytes after the start of its type. */
static void whole_element(const char *name)
{
    MPI_File file = opened(name);
    MPI_Datatype type, moved;
    MPI_Aint begin = 64;
    int count = (1 << 30) + 64, one = 1;
    MPI_Count found;
    MPI_Status status;
    /* Only the first bytes are accessed. */
    unsigned char *memory = mmap(NULL, (size_t)count + 64, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(memory != MAP_FAILED);
    MPI_Type_contiguous(count, MPI_BYTE, &type);
    MPI_Type_create_hindexed(1, &one, &begin, type, &moved);
    MPI_Type_commit(&moved);
    OK(MPI_File_write_at_all(file, rank, &(char){(char)('a' + rank)}, 1, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at(file, 0, memory, 1, moved, &status));
    MPI_Get_elements_x(&status, MPI_BYTE, &found);
    CHECK(found == size && memory[63] == 0 && memory[64 + rank] == 'a' + rank && memory[64 + size] == 0);
    munmap(memory, (size_t)count + 64);
    MPI_Type_free(&type);
    MPI_Type_free(&moved);
    OK(MPI_File_close(&file));
}

/* Arguments: the number of runs, and "refused" if this number is too large. */
int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(argc == 3);
    runs("starfish:mpi/runs", atoi(argv[1]), strcmp(argv[2], "refused") == 0);
    element("starfish:mpi/element");
    too_many("starfish:mpi/too-many");
    whole_element("starfish:mpi/whole-element");
    return end();
}
