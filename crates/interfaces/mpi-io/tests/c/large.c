/* The functions with large counts: they do the same as those with int counts, and accept counts beyond any int. They
   exist from MPI 4 on. */

#include "check.h"

#if MPI_VERSION >= 4

#define COUNT 3000

/* A number of elements beyond any int. Their type has no data, so they need no memory. */
static const MPI_Count MANY = 5000000000;

static MPI_Count count_of(MPI_Status *status)
{
    MPI_Count count;
    MPI_Get_count_c(status, MPI_INT, &count);
    return count;
}

static void counts(MPI_File file)
{
    MPI_Status status;
    MPI_Request request;
    int numbers[COUNT], back[COUNT];
    for (int i = 0; i < COUNT; i++) {
        numbers[i] = rank * COUNT + i;
    }
    MPI_Offset mine = rank * (MPI_Offset)COUNT;
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_write_at_all_c(file, mine, numbers, 1000, MPI_INT, &status));
    CHECK(count_of(&status) == 1000);
    OK(MPI_File_seek(file, mine + 1000, MPI_SEEK_SET));
    OK(MPI_File_write_c(file, numbers + 1000, 1000, MPI_INT, &status));
    CHECK(count_of(&status) == 1000);
    OK(MPI_File_iwrite_c(file, numbers + 2000, 500, MPI_INT, &request));
    OK(MPI_Wait(&request, &status));
    CHECK(count_of(&status) == 500);
    OK(MPI_File_write_all_begin_c(file, numbers + 2500, 500, MPI_INT));
    OK(MPI_File_write_all_end(file, numbers + 2500, &status));
    CHECK(count_of(&status) == 500);
    OK(MPI_File_read_at_all_c(file, mine, back, COUNT, MPI_INT, &status));
    CHECK(count_of(&status) == COUNT && memcmp(back, numbers, sizeof numbers) == 0);
    OK(MPI_File_iread_at_c(file, mine + 10, back, 10, MPI_INT, &request));
    OK(MPI_Wait(&request, &status));
    CHECK(back[9] == numbers[19]);
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    OK(MPI_File_read_ordered_c(file, back, COUNT, MPI_INT, &status));
    CHECK(memcmp(back, numbers, sizeof numbers) == 0);
}

static void many(MPI_File file)
{
    MPI_Status status;
    MPI_Datatype nothing;
    MPI_Count extent;
    char none;
    MPI_Type_contiguous(0, MPI_INT, &nothing);
    MPI_Type_commit(&nothing);
    OK(MPI_File_write_at_all_c(file, 0, &none, MANY, nothing, &status));
    CHECK(count_of(&status) == 0);
    OK(MPI_File_read_at_c(file, 0, &none, MANY, nothing, &status));
    CHECK(count_of(&status) == 0);
    OK(MPI_File_get_type_extent_c(file, MPI_DOUBLE, &extent));
    CHECK(extent == sizeof(double));
    MPI_Type_free(&nothing);
}

/* A type made with large counts. Its extent in bytes, mostly gaps, exceeds any int. */
static void wide(MPI_File file)
{
    MPI_Datatype pair;
    int own[2] = {rank, -rank}, back[2] = {0, 0};
    MPI_Type_vector_c(2, 1, MANY, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    OK(MPI_File_set_view(file, rank * (MPI_Offset)sizeof(int), MPI_INT, pair, "native", MPI_INFO_NULL));
    OK(MPI_File_write_at_all_c(file, 0, own, 2, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at_all_c(file, 0, back, 2, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(back[0] == rank && back[1] == -rank);
    MPI_Offset bytes;
    OK(MPI_File_get_size(file, &bytes));
    CHECK(bytes == (MANY + size) * (MPI_Offset)sizeof(int));
    MPI_Type_free(&pair);
}

int main(int argc, char **argv)
{
    MPI_File file;
    begin(&argc, &argv);
    OK(MPI_File_open(MPI_COMM_WORLD, "starfish:mpi/large", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    counts(file);
    many(file);
    wide(file);
    OK(MPI_File_close(&file));
    return end();
}

#else

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    return end();
}

#endif
