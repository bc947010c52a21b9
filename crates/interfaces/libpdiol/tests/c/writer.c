/* writer.c - writes a file in one of several ways. A test kills it during the writes.
 *
 *     writer [PDIOL options -] name mode seed bytes how
 *
 * `how` is "plainly": sequentially; "flushing": sequentially, with flushes in between; or "backwards": the second half
 * first. The bytes are those of `contents` in crates/command/cli/tests/common/killing.rs; none of them is zero.
 */
#include "check.h"

#include <stdint.h>

#define CHUNK 50000

static void write_all(PFS_FILE *file, const unsigned char *bytes, size_t count, int flushes)
{
    for (size_t at = 0; at < count; at += CHUNK) {
        size_t some = count - at < CHUNK ? count - at : CHUNK;
        CHECK(pdiol_fwrite(bytes + at, 1, some, file) == (ssize_t)some);
        if (flushes && at / CHUNK % 8 == 7)
            CHECK(pdiol_fflush(file) == 0);
    }
}

int main(int argc, char **argv)
{
    CHECK(initialize_pdiol(&argc, &argv) == 0);
    CHECK(argc == 6);
    uint64_t state = strtoull(argv[3], NULL, 10);
    size_t count = strtoull(argv[4], NULL, 10);
    unsigned char *bytes = malloc(count + 1);
    CHECK(bytes != NULL);
    for (size_t at = 0; at < count; at++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        bytes[at] = (unsigned char)(state >> 56 | 1);
    }
    PFS_FILE *file = pdiol_fopen(argv[1], argv[2]);
    CHECK(file != NULL);
    if (strcmp(argv[5], "backwards") == 0) {
        CHECK(pdiol_fseek(file, (long)(count / 2), SEEK_SET) == 0);
        write_all(file, bytes + count / 2, count - count / 2, 0);
        CHECK(pdiol_fseek(file, 0, SEEK_SET) == 0);
        write_all(file, bytes, count / 2, 0);
    } else {
        write_all(file, bytes, count, strcmp(argv[5], "flushing") == 0);
    }
    CHECK(pdiol_fclose(file) == 0 && finalize_pdiol() == 0);
    free(bytes);
    return 0;
}
