/* member.c - writes as one of the processes of a job, and prints the number of flushed records.
 *
 *     member -write_cache BYTES -job NAME - file rank members records
 *
 * Record i of a member has 8 bytes, the number i + 1. The records i of all members are adjacent, in the order of ranks.
 * The program begins when it reads an empty line. After each flush it prints the number of records so far, on a
 * separate line. It repeats a failed flush, and prints the error on standard error.
 */
#include "check.h"

#include <inttypes.h>

#define BETWEEN_FLUSHES 500

/* Prints why an operation failed. Ends the program after too many failures. */
static void say(const char *what)
{
    static int said = 0;
    fprintf(stderr, "%s: %s\n", what, pdiol_strerror());
    CHECK(++said < 20);
}

int main(int argc, char **argv)
{
    CHECK(initialize_pdiol(&argc, &argv) == 0);
    CHECK(argc == 5);
    int64_t rank = atoll(argv[2]), members = atoll(argv[3]), records = atoll(argv[4]);
    PFS_FILE *file = pdiol_fopen(argv[1], "r+");
    CHECK(file != NULL);
    printf("0\n");
    CHECK(fflush(stdout) == 0);
    /* Wait until all members have joined. */
    CHECK(getchar() == '\n');
    for (int64_t i = 0; i < records; i++) {
        int64_t value = i + 1;
        for (;;) {
            CHECK(pdiol_fseeko(file, (i * members + rank) * 8, SEEK_SET) == 0);
            if (pdiol_fwrite(&value, sizeof value, 1, file) == 1)
                break;
            say("write");
            pdiol_clearerr(file);
        }
        if (value % BETWEEN_FLUSHES == 0 || value == records) {
            while (pdiol_fflush(file) != 0)
                say("flush");
            printf("%" PRId64 "\n", value);
            CHECK(fflush(stdout) == 0);
        }
    }
    CHECK(pdiol_fclose(file) == 0 && finalize_pdiol() == 0);
    return 0;
}
