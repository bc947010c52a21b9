/*
 * Measures collective writes and reads of a variable in a PnetCDF file.
 *
 *   arrays_pnetcdf NAME MIB ROUNDS
 */
#include <pnetcdf.h>

#include "arrays.h"

static void check(int code)
{
    if (code != NC_NOERR) {
        fprintf(stderr, "%s\n", ncmpi_strerror(code));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* Writes or reads the array, and returns the time in seconds. */
static double move(const char *name, struct array *part, int writes)
{
    MPI_Offset from[2] = {0, part->first}, count[2] = {part->rows, part->own};
    int file, field, dimensions[2];
    double start = begin_together();
    if (writes) {
        check(ncmpi_create(MPI_COMM_WORLD, name, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
        check(ncmpi_def_dim(file, "row", part->rows, &dimensions[0]));
        check(ncmpi_def_dim(file, "column", part->columns, &dimensions[1]));
        check(ncmpi_def_var(file, "array", NC_DOUBLE, 2, dimensions, &field));
        check(ncmpi_enddef(file));
        check(ncmpi_put_vara_double_all(file, field, from, count, part->values));
        check(ncmpi_sync(file));
    } else {
        check(ncmpi_open(MPI_COMM_WORLD, name, NC_NOWRITE, MPI_INFO_NULL, &file));
        check(ncmpi_inq_varid(file, "array", &field));
        check(ncmpi_get_vara_double_all(file, field, from, count, part->values));
    }
    check(ncmpi_close(file));
    return longest(MPI_Wtime() - start);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (argc != 4) {
        fprintf(stderr, "arrays_pnetcdf NAME MIB ROUNDS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    measure(argv[1], atoi(argv[2]), atoi(argv[3]), move);
    MPI_Finalize();
    return 0;
}
