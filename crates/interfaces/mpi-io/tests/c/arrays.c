/*
 * Arrays distributed over 4 processes, written and read collectively: dealt by records in both dimensions, in boxes,
 * and in columns with gaps in memory. The test that starts this program checks the contents of the files.
 */
#include "check.h"

enum { ROWS = 96, COLUMNS = 130 };

static MPI_File open_file(const char *name)
{
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    return file;
}

static void status_has(MPI_Status *status, int bytes)
{
    int count;
    MPI_Get_count(status, MPI_BYTE, &count);
    CHECK(count == bytes);
}

/* Collectively writes the elements marked in `own`, reopens the file, and reads them back. */
static void there_and_back(const char *name, MPI_Offset displacement, MPI_Datatype view, const char *own, int record)
{
    int bytes = 0, filled = 0;
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        bytes += own[i] ? record : 0;
    }
    unsigned char *data = malloc((size_t)bytes + 1), *back = calloc((size_t)bytes + 1, 1);
    for (long long i = 0; i < ROWS * COLUMNS; i++) {
        for (int b = 0; own[i] && b < record; b++) {
            data[filled++] = at(displacement + i * record + b);
        }
    }
    MPI_Status status;
    MPI_File file = open_file(name);
    OK(MPI_File_set_view(file, displacement, MPI_BYTE, view, "native", MPI_INFO_NULL));
    OK(MPI_File_write_all(file, data, bytes, MPI_BYTE, &status));
    status_has(&status, bytes);
    OK(MPI_File_close(&file));
    file = open_file(name);
    OK(MPI_File_set_view(file, displacement, MPI_BYTE, view, "native", MPI_INFO_NULL));
    OK(MPI_File_read_all(file, back, bytes, MPI_BYTE, &status));
    status_has(&status, bytes);
    CHECK(memcmp(data, back, (size_t)bytes) == 0);
    /* Read the second half independently. */
    int half = bytes / 2;
    memset(back, 0, (size_t)bytes);
    OK(MPI_File_read_at(file, half, back, bytes - half, MPI_BYTE, &status));
    CHECK(memcmp(data + half, back, (size_t)(bytes - half)) == 0);
    OK(MPI_File_close(&file));
    free(data);
    free(back);
}

static void dealt(const char *name, int record, int how, int argument)
{
    static char own[ROWS * COLUMNS];
    int lengths[] = {ROWS, COLUMNS}, hows[] = {how, how}, arguments[] = {argument, argument}, processes[] = {2, 2};
    int runs[] = {argument, argument};
    if (how == MPI_DISTRIBUTE_BLOCK) {
        runs[0] = ROWS / 2;
        runs[1] = COLUMNS / 2;
    }
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        int row = i / COLUMNS / runs[0] % 2, column = i % COLUMNS / runs[1] % 2;
        own[i] = row * 2 + column == rank;
    }
    MPI_Datatype element, view;
    MPI_Type_contiguous(record, MPI_BYTE, &element);
    MPI_Type_create_darray(size, rank, 2, lengths, hows, arguments, processes, MPI_ORDER_C, element, &view);
    MPI_Type_commit(&view);
    there_and_back(name, 0, view, own, record);
    MPI_Type_free(&view);
    MPI_Type_free(&element);
}

static void boxed(const char *name)
{
    static char own[ROWS * COLUMNS];
    int lengths[] = {ROWS, COLUMNS}, counts[] = {ROWS / 2, COLUMNS / 2};
    int firsts[] = {rank / 2 * ROWS / 2, rank % 2 * COLUMNS / 2};
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        int row = i / COLUMNS, column = i % COLUMNS;
        own[i] = row / (ROWS / 2) == rank / 2 && column / (COLUMNS / 2) == rank % 2;
    }
    MPI_Datatype view;
    MPI_Type_create_subarray(2, lengths, counts, firsts, MPI_ORDER_C, MPI_DOUBLE, &view);
    MPI_Type_commit(&view);
    there_and_back(name, 77, view, own, 8);
    MPI_Type_free(&view);
}

/* From byte 100 on, every fourth pair of ints belongs to the same process; the pairs have gaps between them in memory.
   */
static void columns(const char *name)
{
    enum { PAIRS = 3000 };
    MPI_Datatype pair, view, memory;
    int length = 2;
    MPI_Aint where = rank * 2 * (MPI_Aint)sizeof(int);
    MPI_Type_create_hindexed(1, &length, &where, MPI_INT, &pair);
    MPI_Type_create_resized(pair, 0, 8 * (MPI_Aint)sizeof(int), &view);
    MPI_Type_vector(PAIRS, 2, 3, MPI_INT, &memory);
    MPI_Type_commit(&view);
    MPI_Type_commit(&memory);
    int *apart = calloc(PAIRS * 3, sizeof(int)), *back = calloc(PAIRS * 3, sizeof(int));
    for (int i = 0; i < PAIRS; i++) {
        for (int b = 0; b < 8; b++) {
            ((unsigned char *)(apart + 3 * i))[b] = at(100 + 32LL * i + 8 * rank + b);
        }
    }
    MPI_Status status;
    MPI_File file = open_file(name);
    OK(MPI_File_set_view(file, 100, MPI_INT, view, "native", MPI_INFO_NULL));
    OK(MPI_File_write_at_all(file, 0, apart, 1, memory, &status));
    status_has(&status, PAIRS * 8);
    OK(MPI_File_sync(file));
    OK(MPI_File_read_at_all(file, 0, back, 1, memory, &status));
    CHECK(memcmp(apart, back, PAIRS * 3 * sizeof(int)) == 0);
    /* A read across the end of the file is short, and a read beyond the end returns nothing. */
    OK(MPI_File_read_at(file, 2 * PAIRS - 2, back, 4, MPI_INT, &status));
    status_has(&status, 8);
    OK(MPI_File_read_at(file, 2 * PAIRS, back, 4, MPI_INT, &status));
    status_has(&status, 0);
    OK(MPI_File_close(&file));
    free(apart);
    free(back);
    MPI_Type_free(&pair);
    MPI_Type_free(&view);
    MPI_Type_free(&memory);
}

/* Processes that move no data, a hole in the file, and reads beyond the end of the file. */
static void uneven(const char *name)
{
    MPI_File file = open_file(name);
    enum { WRITTEN = 5000, FROM = 4500, END = 6000, BACK = 2000 };
    unsigned char data[END - WRITTEN], back[BACK];
    for (int i = WRITTEN; i < END; i++) {
        data[i - WRITTEN] = at(i);
    }
    MPI_Status status;
    OK(MPI_File_write_at_all(file, WRITTEN, data, rank == 2 ? END - WRITTEN : 0, MPI_BYTE, &status));
    status_has(&status, rank == 2 ? END - WRITTEN : 0);
    OK(MPI_File_sync(file));
    for (int all = 0; all < 2; all++) {
        int reads = all || rank == 1;
        memset(back, 0xEE, sizeof back);
        OK(MPI_File_read_at_all(file, FROM, back, reads ? BACK : 0, MPI_BYTE, &status));
        status_has(&status, reads ? END - FROM : 0);
        for (int i = 0; i < BACK; i++) {
            int is_read = reads && FROM + i < END;
            CHECK(back[i] == (!is_read ? 0xEE : FROM + i < WRITTEN ? 0 : at(FROM + i)));
        }
    }
    OK(MPI_File_close(&file));
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(size == 4);
    dealt("starfish:mpi/dealt-8", 8, MPI_DISTRIBUTE_CYCLIC, 1);
    dealt("starfish:mpi/dealt-100", 100, MPI_DISTRIBUTE_CYCLIC, 3);
    dealt("starfish:mpi/blocks-24", 24, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_DFLT_DARG);
    boxed("starfish:mpi/boxed");
    columns("starfish:mpi/columns");
    uneven("starfish:mpi/uneven");
    return end();
}
