/* Converts MPI datatypes to types of the core, level by level: the MPI library returns the constructor of each type. */

#include <stdlib.h>

#include "shim.h"

/* The constructor of a type and its arguments. All numbers (integers, counts, then addresses) are in one array, in the
   order of the large-count functions. */
struct contents {
    int combiner;
    size_t numbers, types;
    int64_t *number;
    MPI_Datatype *type;
};

static starfish_mpi_type *flatten(MPI_Datatype type, int depth);

/* Limit of levels, above that of selections. */
enum { DEPTH_MAX = 200 };

#if MPI_VERSION >= 4
static int get_contents(MPI_Datatype type, struct contents *contents)
{
    MPI_Count integers, addresses, counts, types;
    if (PMPI_Type_get_envelope_c(type, &integers, &addresses, &counts, &types, &contents->combiner) != MPI_SUCCESS) {
        return -1;
    }
    int *integer = calloc((size_t)integers + 1, sizeof *integer);
    MPI_Aint *address = calloc((size_t)addresses + 1, sizeof *address);
    MPI_Count *count = calloc((size_t)counts + 1, sizeof *count);
    contents->numbers = (size_t)(integers + addresses + counts);
    contents->types = (size_t)types;
    contents->number = calloc(contents->numbers + 1, sizeof *contents->number);
    contents->type = calloc((size_t)types + 1, sizeof *contents->type);
    int is_got = integer && address && count && contents->number && contents->type;
    if (is_got && contents->combiner != MPI_COMBINER_NAMED) {
        is_got = PMPI_Type_get_contents_c(type, integers, addresses, counts, types, integer, address, count,
                                          contents->type) == MPI_SUCCESS;
    }
    if (is_got) {
        int64_t *number = contents->number;
        /* A type made by a large-count function has its counts and lengths in `count`; `integer` has only the other
           arguments. */
        for (MPI_Count i = 0; i < integers; i++) {
            *number++ = integer[i];
        }
        for (MPI_Count i = 0; i < counts; i++) {
            *number++ = count[i];
        }
        for (MPI_Count i = 0; i < addresses; i++) {
            *number++ = address[i];
        }
    }
    free(integer);
    free(address);
    free(count);
    return is_got ? 0 : -1;
}
#else
static int get_contents(MPI_Datatype type, struct contents *contents)
{
    int integers, addresses, types;
    if (PMPI_Type_get_envelope(type, &integers, &addresses, &types, &contents->combiner) != MPI_SUCCESS) {
        return -1;
    }
    int *integer = calloc((size_t)integers + 1, sizeof *integer);
    MPI_Aint *address = calloc((size_t)addresses + 1, sizeof *address);
    contents->numbers = (size_t)integers + (size_t)addresses;
    contents->types = (size_t)types;
    contents->number = calloc(contents->numbers + 1, sizeof *contents->number);
    contents->type = calloc((size_t)types + 1, sizeof *contents->type);
    int is_got = integer && address && contents->number && contents->type;
    if (is_got && contents->combiner != MPI_COMBINER_NAMED) {
        is_got = PMPI_Type_get_contents(type, integers, addresses, types, integer, address, contents->type) ==
                 MPI_SUCCESS;
    }
    if (is_got) {
        int64_t *number = contents->number;
        for (int i = 0; i < integers; i++) {
            *number++ = integer[i];
        }
        for (int i = 0; i < addresses; i++) {
            *number++ = address[i];
        }
    }
    free(integer);
    free(address);
    return is_got ? 0 : -1;
}
#endif

/* Returns true if the type belongs to the MPI library and must not be freed: a named type, or one selected by Fortran
   parameters. */
static int is_of_mpi(MPI_Datatype type)
{
    int combiner;
#if MPI_VERSION >= 4
    MPI_Count integers, addresses, counts, types;
    int code = PMPI_Type_get_envelope_c(type, &integers, &addresses, &counts, &types, &combiner);
#else
    int integers, addresses, types;
    int code = PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
#endif
    if (code != MPI_SUCCESS) {
        return 0;
    }
    switch (combiner) {
    case MPI_COMBINER_NAMED:
    case MPI_COMBINER_F90_REAL:
    case MPI_COMBINER_F90_COMPLEX:
    case MPI_COMBINER_F90_INTEGER:
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
    case MPI_COMBINER_VALUE_INDEX:
#endif
        return 1;
    default: return 0;
    }
}

static void free_contents(struct contents *contents)
{
    for (size_t i = 0; contents->type && i < contents->types; i++) {
        if (contents->type[i] != MPI_DATATYPE_NULL) {
            starfish_shim_let_go(&contents->type[i]);
        }
    }
    free(contents->number);
    free(contents->type);
}

MPI_Datatype starfish_shim_keep(MPI_Datatype type)
{
    MPI_Datatype kept = type;
    if (!is_of_mpi(type)) {
        PMPI_Type_dup(type, &kept);
    }
    return kept;
}

void starfish_shim_let_go(MPI_Datatype *type)
{
    if (!is_of_mpi(*type)) {
        PMPI_Type_free(type);
    }
}

/* Converts a named type: a run of bytes, except for pairs of a number and an int. */
static starfish_mpi_type *of_named(MPI_Datatype type)
{
    MPI_Count size;
    MPI_Aint lower, extent;
    PMPI_Type_size_x(type, &size);
    PMPI_Type_get_extent(type, &lower, &extent);
    int is_pair = type == MPI_SHORT_INT || type == MPI_LONG_INT || type == MPI_DOUBLE_INT ||
                  type == MPI_LONG_DOUBLE_INT;
    if (!is_pair) {
        return starfish_mpi_type_bytes(size);
    }
    int64_t number = size - (int64_t)sizeof(int), align = (int64_t)sizeof(int);
    int64_t blocks[] = {number, (int64_t)sizeof(int)};
    int64_t displacements[] = {0, (number + align - 1) / align * align};
    starfish_mpi_type *byte = starfish_mpi_type_bytes(1);
    starfish_mpi_type *made = starfish_mpi_type_indexed(2, blocks, displacements, byte);
    starfish_mpi_type_free(byte);
    return made;
}

static starfish_mpi_type *of_struct(const struct contents *contents, int depth)
{
    size_t count = (size_t)contents->number[0], got = 0;
    starfish_mpi_type **parts = calloc(count + 1, sizeof *parts), *made = NULL;
    if (!parts) {
        return NULL;
    }
    for (int is_got = 1; is_got && got < count; got += (size_t)is_got) {
        /* MPI_LB and MPI_UB only set bounds, and `flatten` takes the bounds of the whole type. */
        parts[got] = contents->number[1 + got] ? flatten(contents->type[got], depth) : starfish_mpi_type_bytes(0);
        is_got = parts[got] != NULL;
    }
    if (got == count) {
        const int64_t *blocks = contents->number + 1;
        made = starfish_mpi_type_struct(count, blocks, blocks + count, (const starfish_mpi_type *const *)parts);
    }
    for (size_t i = 0; i < got; i++) {
        starfish_mpi_type_free(parts[i]);
    }
    free(parts);
    return made;
}

static starfish_mpi_type *of_dealt(const struct contents *contents, int is_large, const starfish_mpi_type *inner)
{
    const int64_t *number = contents->number;
    size_t sides = (size_t)number[2];
    /* Order of numbers in a large-count type: size, rank, sides, dealings, arguments, processes, order, lengths. In
       other types the lengths follow the sides. */
    const int64_t *lengths = is_large ? number + 4 + 3 * sides : number + 3;
    const int64_t *dealings = is_large ? number + 3 : number + 3 + sides;
    const int64_t *arguments = dealings + sides, *processes = arguments + sides;
    int64_t order = processes[sides];
    int64_t *ways = calloc(2 * sides + 1, sizeof *ways), *blocks = ways + sides;
    if (!ways) {
        return NULL;
    }
    for (size_t i = 0; i < sides; i++) {
        int is_default = arguments[i] == MPI_DISTRIBUTE_DFLT_DARG;
        switch (dealings[i]) {
        case MPI_DISTRIBUTE_BLOCK: ways[i] = STARFISH_MPI_BLOCKS; break;
        case MPI_DISTRIBUTE_CYCLIC: ways[i] = STARFISH_MPI_CYCLIC; break;
        default: ways[i] = STARFISH_MPI_WHOLE;
        }
        blocks[i] = !is_default ? arguments[i] : ways[i] == STARFISH_MPI_CYCLIC ? 1 : 0;
    }
    starfish_mpi_type *made = starfish_mpi_type_dealt(sides, lengths, ways, blocks, processes, number[1],
                                                      order == MPI_ORDER_C, inner);
    free(ways);
    return made;
}

static starfish_mpi_type *of_box(const struct contents *contents, int is_large, const starfish_mpi_type *inner)
{
    const int64_t *number = contents->number;
    size_t sides = (size_t)number[0];
    const int64_t *lengths = is_large ? number + 2 : number + 1;
    const int64_t *counts = lengths + sides, *firsts = counts + sides;
    int64_t order = is_large ? number[1] : firsts[sides];
    return starfish_mpi_type_box(sides, lengths, counts, firsts, order == MPI_ORDER_C, inner);
}

/* Converts blocks at displacements, which are in elements or in bytes. All blocks have one length, or each has its own.
   */
static starfish_mpi_type *of_indexed(const struct contents *contents, int in_elements, int is_equal,
                                     MPI_Datatype element, const starfish_mpi_type *inner)
{
    const int64_t *number = contents->number;
    size_t count = (size_t)number[0];
    MPI_Aint lower, extent = 1;
    if (in_elements) {
        PMPI_Type_get_extent(element, &lower, &extent);
    }
    int64_t *blocks = calloc(2 * count + 1, sizeof *blocks), *displacements = blocks + count;
    if (!blocks) {
        return NULL;
    }
    const int64_t *given = is_equal ? number + 2 : number + 1 + count;
    for (size_t i = 0; i < count; i++) {
        blocks[i] = is_equal ? number[1] : number[1 + i];
        displacements[i] = given[i] * extent;
    }
    starfish_mpi_type *made = starfish_mpi_type_indexed(count, blocks, displacements, inner);
    free(blocks);
    return made;
}

static int is_large(MPI_Datatype type)
{
#if MPI_VERSION >= 4
    MPI_Count integers, addresses, counts, types;
    int combiner;
    PMPI_Type_get_envelope_c(type, &integers, &addresses, &counts, &types, &combiner);
    return counts > 0;
#else
    (void)type;
    return 0;
#endif
}

static starfish_mpi_type *of_derived(MPI_Datatype type, const struct contents *contents, int depth)
{
    const int64_t *number = contents->number;
    if (contents->combiner == MPI_COMBINER_STRUCT) {
        return of_struct(contents, depth);
    }
    if (contents->types != 1) {
        /* Selected by Fortran parameters: a run of `size` bytes. */
        return of_named(type);
    }
    MPI_Datatype element = contents->type[0];
    starfish_mpi_type *inner = flatten(element, depth), *made = NULL;
    if (!inner) {
        return NULL;
    }
    MPI_Aint lower = 0, extent = 0;
    PMPI_Type_get_extent(element, &lower, &extent);
    switch (contents->combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED: made = starfish_mpi_type_contiguous(1, inner); break;
    case MPI_COMBINER_CONTIGUOUS: made = starfish_mpi_type_contiguous(number[0], inner); break;
    case MPI_COMBINER_VECTOR:
        made = starfish_mpi_type_strided(number[0], number[1], number[2] * extent, inner);
        break;
    case MPI_COMBINER_HVECTOR: made = starfish_mpi_type_strided(number[0], number[1], number[2], inner); break;
    case MPI_COMBINER_INDEXED: made = of_indexed(contents, 1, 0, element, inner); break;
    case MPI_COMBINER_INDEXED_BLOCK: made = of_indexed(contents, 1, 1, element, inner); break;
    case MPI_COMBINER_HINDEXED: made = of_indexed(contents, 0, 0, element, inner); break;
    case MPI_COMBINER_HINDEXED_BLOCK: made = of_indexed(contents, 0, 1, element, inner); break;
    case MPI_COMBINER_SUBARRAY: made = of_box(contents, is_large(type), inner); break;
    case MPI_COMBINER_DARRAY: made = of_dealt(contents, is_large(type), inner); break;
    default: starfish_mpi_note_error(STARFISH_MPI_TYPE, "a datatype has an unknown constructor");
    }
    starfish_mpi_type_free(inner);
    return made;
}

/* Returns NULL if the core cannot represent the type. The reason has then been noted already: the caller must not note
   another. */
static starfish_mpi_type *flatten(MPI_Datatype type, int depth)
{
    struct contents contents = {0};
    starfish_mpi_type *made = NULL;
    if (depth >= DEPTH_MAX || get_contents(type, &contents) != 0) {
        starfish_mpi_note_error(STARFISH_MPI_TYPE, "a datatype has too many levels, or MPI cannot decode it");
    } else {
        made = contents.combiner == MPI_COMBINER_NAMED ? of_named(type) : of_derived(type, &contents, depth + 1);
    }
    free_contents(&contents);
    if (!made) {
        return NULL;
    }
    /* Take the extent from the MPI library, which may round it for alignment. */
    MPI_Aint lower, extent;
    PMPI_Type_get_extent(type, &lower, &extent);
    starfish_mpi_type *bounded = starfish_mpi_type_resized(lower, extent, made);
    starfish_mpi_type_free(made);
    return bounded;
}

starfish_mpi_type *starfish_shim_flatten(MPI_Datatype type)
{
    return flatten(type, 0);
}

int starfish_shim_is_run(MPI_Datatype type, MPI_Count count, MPI_Aint *first)
{
    MPI_Count size;
    MPI_Aint lower, extent, reach;
    PMPI_Type_size_x(type, &size);
    PMPI_Type_get_extent(type, &lower, &extent);
    PMPI_Type_get_true_extent(type, first, &reach);
    if (size != reach || (count > 1 && size != extent)) {
        return 0;
    }
    if (is_of_mpi(type)) {
        return 1;
    }
    /* Even if the size equals the extent, the data may be in another order, or overlap. */
    int64_t begin, bytes;
    starfish_mpi_type *flat = flatten(type, 0);
    int is_run = flat && starfish_mpi_type_run(flat, 0, &begin, &bytes) == 0 && bytes == size;
    starfish_mpi_type_free(flat);
    return is_run;
}

int starfish_shim_is_alike(MPI_Datatype type)
{
    MPI_Count size;
    MPI_Aint bytes;
    return PMPI_Type_size_x(type, &size) == MPI_SUCCESS &&
           PMPI_Pack_external_size("external32", 1, type, &bytes) == MPI_SUCCESS && bytes == size;
}
