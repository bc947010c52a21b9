/*
 * Variables in a PnetCDF file, written collectively by some processes and read by others. PnetCDF examines a file with other
 * calls before it opens it through MPI, so the file must be in a mounted directory:
 *
 *   mpicc -o grid_pnetcdf grid_pnetcdf.c -lpnetcdf
 *   starfish mount ~/files
 *   starfish mpi-run -n 4 ./grid_pnetcdf write ~/files/grid.nc
 *   starfish mpi-run -n 3 ./grid_pnetcdf read ~/files/grid.nc
 *   ncdump ~/files/grid.nc
 */
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 120, COLUMNS = 200, STEPS = 3 };

static int rank, size;

static void check(int code, const char *what)
{
    if (code != NC_NOERR) {
        fprintf(stderr, "grid_pnetcdf: process %d: %s: %s\n", rank, what, ncmpi_strerror(code));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* Writes or reads a stripe of columns of `field`, with one wait for all steps, and cyclic rows of `rows` in one collective
 * call. Returns the number of wrong values. */
static int move(int file, int writes, int field, int rows)
{
    MPI_Offset first = COLUMNS * rank / size, columns = COLUMNS * (rank + 1) / size - first, mine = ROWS * columns;
    double *values = calloc((size_t)(STEPS * mine), sizeof *values);
    int requests[STEPS], outcomes[STEPS], wrong = 0;
    for (MPI_Offset i = 0; writes && i < STEPS * mine; i++) {
        MPI_Offset row = i / columns, column = first + i % columns;
        values[i] = (double)(row * COLUMNS + column);
    }
    for (MPI_Offset step = 0; step < STEPS; step++) {
        MPI_Offset from[3] = {step, 0, first}, count[3] = {1, ROWS, columns};
        double *of_step = values + step * mine;
        check(writes ? ncmpi_iput_vara_double(file, field, from, count, of_step, &requests[step])
                     : ncmpi_iget_vara_double(file, field, from, count, of_step, &requests[step]),
              "field");
    }
    check(ncmpi_wait_all(file, STEPS, requests, outcomes), "field");
    for (MPI_Offset i = 0; i < STEPS * mine; i++) {
        wrong += values[i] != (double)(i / columns * COLUMNS + first + i % columns);
    }
    free(values);

    MPI_Offset from[2] = {rank, 0}, stride[2] = {size, 1}, count[2] = {(ROWS - rank + size - 1) / size, COLUMNS};
    int *numbers = calloc((size_t)(count[0] * COLUMNS), sizeof *numbers);
    for (int pass = 0; pass < 2; pass++) {
        for (MPI_Offset i = 0; i < count[0] * COLUMNS; i++) {
            int number = (int)((i / COLUMNS * size + rank) * COLUMNS + i % COLUMNS);
            wrong += pass && numbers[i] != number;
            numbers[i] = pass || writes ? number : 0;
        }
        if (!pass) {
            check(writes ? ncmpi_put_vars_int_all(file, rows, from, count, stride, numbers)
                         : ncmpi_get_vars_int_all(file, rows, from, count, stride, numbers),
                  "rows");
        }
    }
    free(numbers);
    return wrong;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 3) {
        fprintf(stderr, "grid_pnetcdf write|read FILE\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int writes = strcmp(argv[1], "write") == 0, file, sides[3], field, rows;
    if (writes) {
        check(ncmpi_create(MPI_COMM_WORLD, argv[2], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file), argv[2]);
        check(ncmpi_def_dim(file, "step", NC_UNLIMITED, &sides[0]), "a dimension");
        check(ncmpi_def_dim(file, "row", ROWS, &sides[1]), "a dimension");
        check(ncmpi_def_dim(file, "column", COLUMNS, &sides[2]), "a dimension");
        check(ncmpi_def_var(file, "field", NC_DOUBLE, 3, sides, &field), "a variable");
        check(ncmpi_def_var(file, "rows", NC_INT, 2, sides + 1, &rows), "a variable");
        check(ncmpi_put_att_text(file, NC_GLOBAL, "title", 4, "grid"), "an attribute");
        check(ncmpi_enddef(file), "the header");
    } else {
        check(ncmpi_open(MPI_COMM_WORLD, argv[2], NC_NOWRITE, MPI_INFO_NULL, &file), argv[2]);
        check(ncmpi_inq_varid(file, "field", &field), "field");
        check(ncmpi_inq_varid(file, "rows", &rows), "rows");
    }
    int wrong = move(file, writes, field, rows);
    check(ncmpi_close(file), "closing");
    if (wrong) {
        fprintf(stderr, "grid_pnetcdf: process %d: %d values are wrong\n", rank, wrong);
    }
    MPI_Finalize();
    return wrong != 0;
}
