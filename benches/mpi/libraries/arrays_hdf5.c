/*
 * Measures collective writes and reads of an array in an HDF5 file, contiguous or chunked.
 *
 *   arrays_hdf5 NAME MIB ROUNDS contiguous|chunked
 */
#include <hdf5.h>
#include <string.h>

#include "arrays.h"

static int is_chunked;

static hid_t checked(hid_t id)
{
    if (id < 0) MPI_Abort(MPI_COMM_WORLD, 1);
    return id;
}

/* Writes or reads the array, and returns the time in seconds. */
static double move(const char *name, struct array *part, int writes)
{
    hsize_t whole[2] = {(hsize_t)part->rows, (hsize_t)part->columns}, chunk[2] = {256, 256};
    hsize_t from[2] = {0, (hsize_t)part->first}, count[2] = {(hsize_t)part->rows, (hsize_t)part->own};
    double start = begin_together();
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), transfer = H5Pcreate(H5P_DATASET_XFER);
    H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
    H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);
    hid_t file = checked(writes ? H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access)
                                : H5Fopen(name, H5F_ACC_RDONLY, access));
    hid_t space = H5Screate_simple(2, whole, NULL), memory = H5Screate_simple(2, count, NULL), array;
    H5Sselect_hyperslab(space, H5S_SELECT_SET, from, NULL, count, NULL);
    if (writes) {
        hid_t made = H5Pcreate(H5P_DATASET_CREATE);
        if (is_chunked) H5Pset_chunk(made, 2, chunk);
        H5Pset_fill_time(made, H5D_FILL_TIME_NEVER);
        array = checked(H5Dcreate2(file, "array", H5T_IEEE_F64LE, space, H5P_DEFAULT, made, H5P_DEFAULT));
        checked(H5Dwrite(array, H5T_NATIVE_DOUBLE, memory, space, transfer, part->values));
        checked(H5Fflush(file, H5F_SCOPE_GLOBAL));
        H5Pclose(made);
    } else {
        array = checked(H5Dopen2(file, "array", H5P_DEFAULT));
        checked(H5Dread(array, H5T_NATIVE_DOUBLE, memory, space, transfer, part->values));
    }
    H5Dclose(array);
    H5Sclose(space);
    H5Sclose(memory);
    H5Pclose(transfer);
    H5Pclose(access);
    checked(H5Fclose(file));
    return longest(MPI_Wtime() - start);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (argc != 5) {
        fprintf(stderr, "arrays_hdf5 NAME MIB ROUNDS contiguous|chunked\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    is_chunked = strcmp(argv[4], "chunked") == 0;
    measure(argv[1], atoi(argv[2]), atoi(argv[3]), move);
    MPI_Finalize();
    return 0;
}
