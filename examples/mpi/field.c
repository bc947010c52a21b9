/*
 * A two-dimensional field, distributed over processes in boxes: all processes write it to one file collectively, and any
 * number of processes could read it back.
 *
 *   mpicc -o field field.c
 *   starfish mpi-run -n 4 ./field starfish:field
 *
 * The same program writes to a local disk if it is given another name.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 600, COLUMNS = 400 };

static void check(int error, const char *what)
{
    if (error != MPI_SUCCESS) {
        char text[MPI_MAX_ERROR_STRING];
        int length;
        MPI_Error_string(error, text, &length);
        fprintf(stderr, "field: %s: %s\n", what, text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const char *name = argc > 1 ? argv[1] : "starfish:field";
    int size, grid[2] = {0, 0}, periods[2] = {0, 0}, place[2], rank;
    MPI_Comm processes;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Dims_create(size, 2, grid);
    MPI_Cart_create(MPI_COMM_WORLD, 2, grid, periods, 1, &processes);
    MPI_Comm_rank(processes, &rank);
    MPI_Cart_coords(processes, rank, 2, place);

    /* The box of this process. Sizes differ by at most one row or column. */
    int whole[2] = {ROWS, COLUMNS}, from[2], box[2];
    for (int d = 0; d < 2; d++) {
        from[d] = whole[d] * place[d] / grid[d];
        box[d] = whole[d] * (place[d] + 1) / grid[d] - from[d];
    }
    MPI_Datatype part;
    MPI_Type_create_subarray(2, whole, box, from, MPI_ORDER_C, MPI_DOUBLE, &part);
    MPI_Type_commit(&part);
    int count = box[0] * box[1];
    double *field = malloc((size_t)count * sizeof *field), *back = calloc((size_t)count, sizeof *back);
    for (int i = 0; i < count; i++) {
        field[i] = (double)(from[0] + i / box[1]) * COLUMNS + from[1] + i % box[1];
    }

    MPI_File file;
    check(MPI_File_open(processes, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file), name);
    check(MPI_File_set_view(file, 0, MPI_DOUBLE, part, "native", MPI_INFO_NULL), "the view");
    check(MPI_File_write_all(file, field, count, MPI_DOUBLE, MPI_STATUS_IGNORE), "writing");
    check(MPI_File_sync(file), "flushing to the disks");
    check(MPI_File_read_at_all(file, 0, back, count, MPI_DOUBLE, MPI_STATUS_IGNORE), "reading");
    check(MPI_File_close(&file), "closing");
    int wrong = 0, all_wrong;
    for (int i = 0; i < count; i++) {
        wrong += back[i] != field[i];
    }
    MPI_Type_free(&part);
    MPI_Reduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, 0, processes);
    if (rank == 0) {
        printf("%s: %d x %d values of %d processes, %d wrong\n", name, ROWS, COLUMNS, size, all_wrong);
    }
    MPI_Finalize();
    return wrong != 0;
}
