/* modes.c - every mode of fopen has the same effect on a PDIOL file as on a file of libc.
 *
 * Run this in an empty directory, in which the program creates the files of libc.
 */
#include "check.h"

static const char *const MODES[] = {
    "r", "r+", "w", "w+", "a", "a+", "rb", "r+b", "rb+", "wb", "w+b", "ab", "a+b", "re", "wx", "w+x", "wbx",
    "ax", "a+x",
};

/* Outcome of a step: the result, the bytes read, and the state of the file afterwards. */
struct step {
    long result, position;
    int end, error;
    char text[32];
};

#define STEPS 12

/* Defines a function that runs the steps with one of the two libraries. */
#define DEFINE_RUN(NAME, TYPE, P)                                                                   \
    static int NAME(const char *mode, int exists, struct step *steps)                               \
    {                                                                                               \
        TYPE *file;                                                                                 \
        int step = 0;                                                                               \
        P##unlink("x");                                                                             \
        if (exists) {                                                                               \
            file = P##fopen("x", "w");                                                              \
            CHECK(file != NULL && P##fwrite("0123456789", 1, 10, file) == 10);                      \
            CHECK(P##fclose(file) == 0);                                                            \
        }                                                                                           \
        errno = 0;                                                                                  \
        file = P##fopen("x", mode);                                                                 \
        if (file == NULL)                                                                           \
            return errno;                                                                           \
        memset(steps, 0, STEPS * sizeof *steps);                                                    \
        STEP(P, P##ftell(file));                                                                    \
        STEP(P, P##fgets(steps[step].text, 4, file) != NULL);                                       \
        STEP(P, P##fseek(file, 5, SEEK_SET));                                                       \
        STEP(P, (long)P##fwrite("ab", 1, 2, file) == 2);                                            \
        STEP(P, P##fflush(file));                                                                   \
        STEP(P, P##fseek(file, -3, SEEK_CUR));                                                      \
        STEP(P, (long)P##fread(steps[step].text, 1, 3, file) == 3);                                 \
        STEP(P, P##fseek(file, 0, SEEK_END));                                                       \
        STEP(P, P##getc(file));                                                                     \
        P##clearerr(file);                                                                          \
        STEP(P, P##fseek(file, -100, SEEK_SET) != 0);                                               \
        STEP(P, P##putc('c', file));                                                                \
        STEP(P, P##fflush(file));                                                                   \
        CHECK(P##fclose(file) == 0);                                                                \
        file = P##fopen("x", "r");                                                                  \
        CHECK(file != NULL);                                                                        \
        step = STEPS - 1;                                                                           \
        steps[step].result = (long)P##fread(steps[step].text, 1, 31, file);                         \
        CHECK(P##fclose(file) == 0);                                                                \
        return 0;                                                                                   \
    }

#define STEP(P, CALL)                                                                               \
    do {                                                                                            \
        steps[step].result = (CALL);                                                                \
        steps[step].position = P##ftell(file);                                                      \
        steps[step].end = P##feof(file) != 0;                                                       \
        steps[step].error = P##ferror(file) != 0;                                                   \
        step++;                                                                                     \
    } while (0)

#define libc_unlink unlink
#define libc_fopen fopen
#define libc_fclose fclose
#define libc_fread fread
#define libc_fwrite fwrite
#define libc_fgets fgets
#define libc_getc getc
#define libc_putc putc
#define libc_fseek fseek
#define libc_ftell ftell
#define libc_fflush fflush
#define libc_feof feof
#define libc_ferror ferror
#define libc_clearerr clearerr

#include <unistd.h>

DEFINE_RUN(run_libc, FILE, libc_)
DEFINE_RUN(run_pdiol, PFS_FILE, pdiol_)

int main(int argc, char **argv)
{
    struct step expected[STEPS], found[STEPS];
    int failures = 0;

    CHECK(initialize_pdiol(&argc, &argv) == 0);
    for (size_t mode = 0; mode < sizeof MODES / sizeof *MODES; mode++)
        for (int exists = 0; exists < 2; exists++) {
            int expected_errno = run_libc(MODES[mode], exists, expected);
            int found_errno = run_pdiol(MODES[mode], exists, found);
            if (expected_errno != found_errno) {
                printf("%s, exists %d: errno %d, expected %d\n", MODES[mode], exists, found_errno, expected_errno);
                failures++;
                continue;
            }
            for (int step = 0; expected_errno == 0 && step < STEPS; step++) {
                struct step *a = &expected[step], *b = &found[step];
                if (a->result == b->result && a->position == b->position && a->end == b->end &&
                    a->error == b->error && strcmp(a->text, b->text) == 0)
                    continue;
                printf("%s, exists %d, step %d: %ld at %ld, end %d, error %d, \"%s\"; expected %ld at %ld, "
                       "end %d, error %d, \"%s\"\n",
                       MODES[mode], exists, step, b->result, b->position, b->end, b->error, b->text, a->result,
                       a->position, a->end, a->error, a->text);
                failures++;
            }
        }
    CHECK_FAILS(EINVAL, pdiol_fopen("x", "rw") == NULL);
    CHECK_FAILS(EINVAL, pdiol_fopen("x", "") == NULL);
    CHECK(finalize_pdiol() == 0);
    return failures != 0;
}
