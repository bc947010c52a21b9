/*
 * Flattens random nested types by the shim, and compares the places of their data with those from MPI_Pack. Compiled
 * together with the shim's types.c, and run by one process.
 */
#include "../../shim/shim.h"
#include "check.h"

static unsigned long long state;

static int draw(int below)
{
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (int)((state >> 33) % (unsigned long long)below);
}

static MPI_Datatype named(void)
{
    MPI_Datatype kind;
    switch (draw(8)) {
    case 0: return MPI_CHAR;
    case 1: return MPI_SHORT;
    case 2: return MPI_INT;
    case 3: return MPI_DOUBLE;
    case 4: return MPI_SHORT_INT;
    /* Types for Fortran kinds are unnamed and must not be freed; some MPI libraries do not have them. */
    case 5: return MPI_Type_create_f90_real(12, 100, &kind) == MPI_SUCCESS ? kind : MPI_DOUBLE;
    case 6: return MPI_Type_create_f90_integer(4, &kind) == MPI_SUCCESS ? kind : MPI_SHORT;
    default: return MPI_DOUBLE_INT;
    }
}

static MPI_Datatype drawn(int depth);

static MPI_Datatype array(MPI_Datatype inner)
{
    int sides = 1 + draw(3), order = draw(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    int lengths[3], counts[3], firsts[3], hows[3], arguments[3], processes[3], all = 1;
    for (int i = 0; i < sides; i++) {
        lengths[i] = 1 + draw(5);
        counts[i] = 1 + draw(lengths[i]);
        firsts[i] = draw(lengths[i] - counts[i] + 1);
        processes[i] = 1 + draw(3);
        hows[i] = draw(3) == 0 && processes[i] == 1 ? MPI_DISTRIBUTE_NONE
                  : draw(2)                        ? MPI_DISTRIBUTE_BLOCK
                                                   : MPI_DISTRIBUTE_CYCLIC;
        arguments[i] = hows[i] == MPI_DISTRIBUTE_CYCLIC && draw(2) ? 1 + draw(3) : MPI_DISTRIBUTE_DFLT_DARG;
        all *= processes[i];
    }
    MPI_Datatype made;
    int code = draw(2) ? MPI_Type_create_subarray(sides, lengths, counts, firsts, order, inner, &made)
                       : MPI_Type_create_darray(all, draw(all), sides, lengths, hows, arguments, processes, order, inner,
                                                &made);
    /* Open MPI 4.1 rejects some arrays. */
    if (code != MPI_SUCCESS) {
        MPI_Type_dup(inner, &made);
    }
    return made;
}

static MPI_Datatype derived(MPI_Datatype inner, int depth)
{
    MPI_Aint lower, extent;
    MPI_Type_get_extent(inner, &lower, &extent);
    int lengths[4], places[4], count = 1 + draw(4), block = 1 + draw(3), next = draw(3);
    MPI_Aint displacements[4];
    for (int i = 0; i < count; i++) {
        lengths[i] = draw(4);
        places[i] = next;
        displacements[i] = next * extent + i;
        next += lengths[i] + draw(3) + 1;
    }
    MPI_Datatype made, types[4];
    switch (draw(11)) {
    case 0: MPI_Type_contiguous(count, inner, &made); break;
    case 1: MPI_Type_vector(count, block, block + draw(3), inner, &made); break;
    case 2: MPI_Type_create_hvector(count, block, block * extent + draw(5), inner, &made); break;
    case 3: MPI_Type_indexed(count, lengths, places, inner, &made); break;
    case 4: MPI_Type_create_hindexed(count, lengths, displacements, inner, &made); break;
    case 5:
        for (int i = 0; i < count; i++) {
            places[i] = i * (block + 1);
        }
        MPI_Type_create_indexed_block(count, block, places, inner, &made);
        break;
    case 6:
        for (int i = 0; i < count; i++) {
            displacements[i] = i * (block * extent + 3);
        }
        MPI_Type_create_hindexed_block(count, block, displacements, inner, &made);
        break;
    case 7: {
        MPI_Aint at = draw(4);
        for (int i = 0; i < count; i++) {
            MPI_Aint first, reach, own_lower, own_extent;
            types[i] = draw(2) ? named() : drawn(depth - 1);
            MPI_Type_get_true_extent(types[i], &first, &reach);
            MPI_Type_get_extent(types[i], &own_lower, &own_extent);
            displacements[i] = at - (first < 0 ? first : 0);
            /* The next block begins after the last data of this one. */
            at = displacements[i] + (lengths[i] ? (lengths[i] - 1) * own_extent + first + reach : 0) + draw(3);
        }
        MPI_Type_create_struct(count, lengths, displacements, types, &made);
        break;
    }
    case 8: MPI_Type_create_resized(inner, lower - draw(3), extent + 3 + draw(9), &made); break;
    case 9: MPI_Type_dup(inner, &made); break;
    default: made = array(inner);
    }
    return made;
}

static MPI_Datatype drawn(int depth)
{
    return depth == 0 ? named() : derived(drawn(depth - 1), depth);
}

/* Returns 1 if the core and MPI_Pack agree on the places of the data, 0 if not, -1 if the core rejects the type. */
static int is_right(MPI_Datatype type)
{
    MPI_Aint lower, extent, first, reach;
    int bytes;
    MPI_Type_get_extent(type, &lower, &extent);
    MPI_Type_get_true_extent(type, &first, &reach);
    MPI_Type_size(type, &bytes);
    if (bytes > 200000 || reach > 2000000) {
        return -1;
    }
    /* The default error handler, as in a program that sets none. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    starfish_mpi_type *flat = starfish_shim_flatten(type);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (!flat) {
        /* The core rejects types with data in descending order. */
        return -1;
    }
    unsigned char *memory = malloc((size_t)reach + 1), *packed = malloc((size_t)bytes + 1);
    int right = 1, is_packed = 1;
    /* The memory holds one byte of each offset per round, so two rounds distinguish offsets that have one byte in
       common. */
    for (int round = 0; round < 2; round++) {
        int position = 0;
        for (MPI_Aint i = 0; i < reach; i++) {
            memory[i] = (unsigned char)(round ? i >> 8 : i);
        }
        MPI_Pack(memory - first, 1, type, packed, bytes, &position, MPI_COMM_SELF);
        /* MPICH 4.0.2 sometimes packs only a part of a type. */
        is_packed &= position == bytes;
        int64_t at_byte = 0, place, run;
        while (starfish_mpi_type_run(flat, at_byte, &place, &run) == 0 && run > 0) {
            for (int64_t i = 0; i < run; i++) {
                right &= at_byte + i < bytes && packed[at_byte + i] == memory[place + i - first];
            }
            at_byte += run;
        }
        right &= at_byte == bytes;
    }
    free(memory);
    free(packed);
    starfish_mpi_type_free(flat);
    return is_packed ? right : -1;
}

int main(int argc, char **argv)
{
    int tried = 0, refused = 0;
    begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int seed = 0; seed < 4000; seed++) {
        state = (unsigned long long)seed * 1000003 + 17;
        MPI_Datatype type = drawn(1 + seed % 4);
        MPI_Type_commit(&type);
        int right = is_right(type);
        if (right == 0) {
            fprintf(stderr, "seed %d: the core and MPI_Pack disagree on the places of the data\n", seed);
        }
        CHECK(right != 0);
        tried += right == 1;
        refused += right == -1;
    }
    printf("%d types agree; %d were skipped: too large, not valid for a file, or not packed whole\n", tried, refused);
    CHECK(tried > 3 * refused);
    return end();
}
