/*
 * Arrays in an HDF5 file, written collectively by some processes and read by others.
 *
 *   h5pcc.mpich -o grid_hdf5 grid_hdf5.c
 *   starfish mpi-run -n 4 ./grid_hdf5 write starfish:grid.h5
 *   starfish mpi-run -n 3 ./grid_hdf5 read starfish:grid.h5
 *   starfish get grid.h5 && h5dump grid.h5
 */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 120, COLUMNS = 200 };

static int rank, size;

static hid_t check(hid_t id, const char *what)
{
    if (id < 0) {
        fprintf(stderr, "grid_hdf5: process %d: %s\n", rank, what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return id;
}

/* Returns the part of this process: cyclic rows, or a stripe of columns. */
static hid_t part(int in_turn, hsize_t box[2])
{
    hsize_t whole[2] = {ROWS, COLUMNS}, from[2] = {0, 0}, stride[2] = {1, 1}, count[2] = {ROWS, COLUMNS};
    if (in_turn) {
        from[0] = (hsize_t)rank;
        stride[0] = (hsize_t)size;
        count[0] = (hsize_t)((ROWS - rank + size - 1) / size);
    } else {
        from[1] = (hsize_t)(COLUMNS * rank / size);
        count[1] = (hsize_t)(COLUMNS * (rank + 1) / size) - from[1];
    }
    hid_t space = check(H5Screate_simple(2, whole, NULL), "a space");
    check(H5Sselect_hyperslab(space, H5S_SELECT_SET, from, stride, count, NULL), "a selection");
    memcpy(box, count, sizeof count);
    return space;
}

/* Returns the expected value at a position in the part. */
static double value(int in_turn, hsize_t row, hsize_t column)
{
    hsize_t from = in_turn ? 0 : (hsize_t)(COLUMNS * rank / size);
    hsize_t in_whole = in_turn ? row * (hsize_t)size + (hsize_t)rank : row;
    return (double)(in_whole * COLUMNS + from + column);
}

/* Writes or reads an array, and returns the number of wrong values. */
static int move(hid_t file, int writes, const char *name, int is_chunked, int in_turn, H5FD_mpio_xfer_t how)
{
    hsize_t whole[2] = {ROWS, COLUMNS}, chunk[2] = {32, 64}, box[2];
    hid_t space = part(in_turn, box), memory = check(H5Screate_simple(2, box, NULL), "a space");
    double *values = calloc(box[0] * box[1], sizeof *values);
    hid_t transfer = H5Pcreate(H5P_DATASET_XFER), array;
    H5Pset_dxpl_mpio(transfer, how);
    if (writes) {
        hid_t made = H5Pcreate(H5P_DATASET_CREATE), all = H5Screate_simple(2, whole, NULL);
        if (is_chunked) {
            H5Pset_chunk(made, 2, chunk);
        }
        array = check(H5Dcreate2(file, name, H5T_IEEE_F64LE, all, H5P_DEFAULT, made, H5P_DEFAULT), name);
        for (hsize_t i = 0; i < box[0] * box[1]; i++) {
            values[i] = value(in_turn, i / box[1], i % box[1]);
        }
        check(H5Dwrite(array, H5T_NATIVE_DOUBLE, memory, space, transfer, values), name);
        H5Sclose(all);
        H5Pclose(made);
    } else {
        array = check(H5Dopen2(file, name, H5P_DEFAULT), name);
        check(H5Dread(array, H5T_NATIVE_DOUBLE, memory, space, transfer, values), name);
    }
    int wrong = 0;
    for (hsize_t i = 0; i < box[0] * box[1]; i++) {
        wrong += values[i] != value(in_turn, i / box[1], i % box[1]);
    }
    check(H5Dclose(array), name);
    H5Pclose(transfer);
    H5Sclose(memory);
    H5Sclose(space);
    free(values);
    return wrong;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 3) {
        fprintf(stderr, "grid_hdf5 write|read FILE\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int writes = strcmp(argv[1], "write") == 0, wrong = 0;
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
    hid_t file = check(writes ? H5Fcreate(argv[2], H5F_ACC_TRUNC, H5P_DEFAULT, access)
                              : H5Fopen(argv[2], H5F_ACC_RDONLY, access),
                       argv[2]);
    wrong += move(file, writes, "rows", 0, 1, H5FD_MPIO_COLLECTIVE);
    wrong += move(file, writes, "columns", 0, 0, H5FD_MPIO_INDEPENDENT);
    wrong += move(file, writes, "tiles", 1, 0, H5FD_MPIO_COLLECTIVE);
    wrong += move(file, writes, "tiled rows", 1, 1, H5FD_MPIO_INDEPENDENT);
    check(H5Fclose(file), "closing");
    H5Pclose(access);
    if (wrong) {
        fprintf(stderr, "grid_hdf5: process %d: %d values are wrong\n", rank, wrong);
    }
    MPI_Finalize();
    return wrong != 0;
}
