/* functions.c - tests the promises of each function of pdiol.h. */
#include "check.h"

#include <fcntl.h>
#include <limits.h>

#define PAGE 65536

/* Returns a byte that depends on its offset. */
static unsigned char byte_at(size_t offset)
{
    return (unsigned char)((offset * 2654435761u) >> 13);
}

static void make(const char *name, size_t bytes)
{
    PFS_FILE *file = pdiol_fopen(name, "w");
    CHECK(file != NULL);
    for (size_t offset = 0; offset < bytes; offset++)
        CHECK(pdiol_putc(byte_at(offset), file) == byte_at(offset));
    CHECK(pdiol_fclose(file) == 0);
}

/* Files that end near the end of a page, read by all functions. */
static void sizes(void)
{
    static const size_t SIZES[] = {0, 1, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE + 17};
    static unsigned char buffer[4 * PAGE];
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        pdiol_state_struct state;
        size_t offset = 0;
        int byte;
        make("file", SIZES[i]);
        CHECK(pdiol_stat("file", &state) == 0 && state.size == (int64_t)SIZES[i]);
        CHECK(state.block_size == PAGE && state.disk_number >= 1);
        PFS_FILE *file = pdiol_fopen("file", "r");
        CHECK(file != NULL && !pdiol_feof(file));
        while ((byte = pdiol_getc(file)) != EOF)
            CHECK(byte == byte_at(offset++));
        CHECK(offset == SIZES[i] && pdiol_feof(file) && !pdiol_ferror(file));
        CHECK(pdiol_ftell(file) == (long)offset);
        pdiol_rewind(file);
        CHECK(!pdiol_feof(file) && pdiol_ftell(file) == 0);
        for (offset = 0; (byte = pdiol_getc_unlocked(file)) != EOF; offset++)
            CHECK(byte == byte_at(offset));
        CHECK(offset == SIZES[i]);
        CHECK(pdiol_fseek(file, 0, SEEK_SET) == 0);
        CHECK(pdiol_fread(buffer, 1, sizeof buffer, file) == (ssize_t)SIZES[i]);
        for (offset = 0; offset < SIZES[i]; offset++)
            CHECK(buffer[offset] == byte_at(offset));
        CHECK(pdiol_feof(file));
        /* The file is not a whole number of items. */
        pdiol_rewind(file);
        CHECK(pdiol_fread(buffer, 1000, 1000, file) == (ssize_t)(SIZES[i] / 1000));
        CHECK(pdiol_fclose(file) == 0);
    }
}

static void lines(void)
{
    char line[100], expected[100];
    PFS_FILE *file = pdiol_fopen("lines", "w+");
    CHECK(file != NULL);
    for (int i = 0; i < 20000; i++) {
        snprintf(expected, sizeof expected, "this is line %d\n", i);
        CHECK(pdiol_fputs(expected, file) >= 0);
    }
    CHECK(pdiol_fputs("the last", file) >= 0);
    pdiol_rewind(file);
    for (int i = 0; i < 20000; i++) {
        snprintf(expected, sizeof expected, "this is line %d\n", i);
        CHECK(pdiol_fgets(line, sizeof line, file) == line && strcmp(line, expected) == 0);
    }
    CHECK(pdiol_fgets(line, 5, file) == line && strcmp(line, "the ") == 0);
    CHECK(pdiol_fgets(line, 1, file) == line && strcmp(line, "") == 0);
    CHECK(pdiol_fgets(line, sizeof line, file) == line && strcmp(line, "last") == 0);
    CHECK(pdiol_fgets(line, sizeof line, file) == NULL && pdiol_feof(file));
    CHECK_FAILS(EINVAL, pdiol_fgets(line, 0, file) == NULL);
    CHECK(pdiol_fclose(file) == 0);
}

/* The end-of-file state lasts until the program clears it, as in stdio. */
static void end_of_file(void)
{
    PFS_FILE *file = pdiol_fopen("end", "w+"), *other = pdiol_fopen("end", "a");
    CHECK(file != NULL && other != NULL);
    CHECK(pdiol_getc(file) == EOF && pdiol_feof(file));
    CHECK(pdiol_putc('x', other) == 'x' && pdiol_fflush(other) == 0);
    CHECK(pdiol_getc(file) == EOF);
    pdiol_clearerr(file);
    CHECK(!pdiol_feof(file) && pdiol_getc(file) == 'x');
    CHECK(pdiol_fclose(file) == 0 && pdiol_fclose(other) == 0);
}

/* Alternates reads and writes, byte by byte. */
static void update(void)
{
    make("update", 1000);
    PFS_FILE *file = pdiol_fopen("update", "r+");
    CHECK(file != NULL);
    CHECK(pdiol_getc(file) == byte_at(0) && pdiol_putc('A', file) == 'A' && pdiol_getc(file) == byte_at(2));
    CHECK(pdiol_putc(300, file) == 300 % 256 && pdiol_ftello(file) == 4);
    CHECK(pdiol_putc('B', file) == 'B' && pdiol_fwrite("CD", 1, 2, file) == 2 && pdiol_putc('E', file) == 'E');
    CHECK(pdiol_fseeko(file, 1, SEEK_SET) == 0 && pdiol_getc(file) == 'A');
    CHECK(pdiol_fseek(file, 4, SEEK_SET) == 0);
    CHECK(pdiol_getc(file) == 'B' && pdiol_getc(file) == 'C' && pdiol_getc(file) == 'D' && pdiol_getc(file) == 'E');
    CHECK(pdiol_getc(file) == byte_at(8));
    CHECK(pdiol_ftruncate(file, 5) == 0 && pdiol_fseek(file, 0, SEEK_END) == 0 && pdiol_ftell(file) == 5);
    CHECK_FAILS(EINVAL, pdiol_ftruncate(file, -1) == -1);
    CHECK(pdiol_fclose(file) == 0);
}

static void beyond_four_gibibytes(void)
{
    const int64_t far = (int64_t)5 << 30;
    pdiol_state_struct state;
    char text[8] = "";
    PFS_FILE *file = pdiol_fopen("sparse", "w+");
    CHECK(file != NULL);
    CHECK(pdiol_fseeko(file, far, SEEK_SET) == 0 && pdiol_fwrite("end", 3, 1, file) == 1);
    CHECK(pdiol_fstat(file, &state) == 0 && state.size == far + 3);
    CHECK(pdiol_fseeko(file, -5, SEEK_END) == 0 && pdiol_ftello(file) == far - 2);
    CHECK(pdiol_fread(text, 1, sizeof text, file) == 5 && memcmp(text, "\0\0end", 5) == 0);
    CHECK(pdiol_fseeko(file, far / 2, SEEK_SET) == 0 && pdiol_getc(file) == 0);
    CHECK(pdiol_fclose(file) == 0 && pdiol_unlink("sparse") == 0);
}

static void names(void)
{
    static const char *const GOOD[] = {"with space", "gr\xc3\xb6\xc3\x9f" "e", "/../root", "..."};
    char longest[301];
    pdiol_state_struct state;
    for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++) {
        make(GOOD[i], 10);
        CHECK(pdiol_stat(GOOD[i], &state) == 0 && state.size == 10);
        CHECK(pdiol_unlink(GOOD[i]) == 0);
        CHECK_FAILS(ENOENT, pdiol_stat(GOOD[i], &state) == -1);
    }
    memset(longest, 'x', 300);
    longest[300] = '\0';
    CHECK_FAILS(ENAMETOOLONG, pdiol_fopen(longest, "w") == NULL);
    CHECK_FAILS(EISDIR, pdiol_fopen("..", "w") == NULL);
    CHECK_FAILS(ENOENT, pdiol_fopen("../x", "r") == NULL);
    CHECK_FAILS(ENOENT, pdiol_fopen("deep/er", "w") == NULL);
    CHECK_FAILS(ENOTDIR, pdiol_fopen("file/x", "w") == NULL);
    CHECK_FAILS(EINVAL, pdiol_fopen(NULL, "w") == NULL);
    CHECK_FAILS(EINVAL, pdiol_fopen("x", NULL) == NULL);
    CHECK_FAILS(ENOENT, pdiol_unlink("nothing") == -1);
    CHECK(strstr(pdiol_strerror(), "nothing") != NULL);
}

static void refusals(void)
{
    char byte;
    make("refusals", 10);
    PFS_FILE *reading = pdiol_fopen("refusals", "r"), *writing = pdiol_fopen("refusals", "r+");
    CHECK(reading != NULL && writing != NULL);
    CHECK_FAILS(EBADF, pdiol_fwrite("x", 1, 1, reading) == -1);
    CHECK(pdiol_ferror(reading));
    pdiol_clearerr(reading);
    CHECK(!pdiol_ferror(reading));
    CHECK_FAILS(EBADF, pdiol_putc('x', reading) == EOF);
    CHECK_FAILS(EBADF, pdiol_ftruncate(reading, 1) == -1);
    CHECK_FAILS(EINVAL, pdiol_fseek(reading, -1, SEEK_SET) == -1);
    CHECK_FAILS(EINVAL, pdiol_fseek(reading, -11, SEEK_END) == -1);
    CHECK_FAILS(EINVAL, pdiol_fseek(reading, 0, 17) == -1);
    CHECK_FAILS(EINVAL, pdiol_fread(&byte, SIZE_MAX, 2, reading) == -1);
    CHECK(pdiol_fread(&byte, 0, 5, reading) == 0 && pdiol_fread(&byte, 1, 0, reading) == 0);
    CHECK_FAILS(EINVAL, pdiol_fread(NULL, 1, 1, reading) == -1);
    CHECK_FAILS(EINVAL, pdiol_fwrite(NULL, 1, 1, writing) == -1);
    CHECK_FAILS(EINVAL, pdiol_fgets(NULL, 8, reading) == NULL);
    CHECK(pdiol_fread(NULL, 1, 0, reading) == 0 && pdiol_fwrite(NULL, 0, 1, writing) == 0);
    CHECK_FAILS(EINVAL, pdiol_hint(reading, 17, 0) == -1);
    CHECK_FAILS(EINVAL, pdiol_hint(reading, AP_SEQUENTIAL, 64) == -1);
    CHECK(pdiol_hint(reading, AP_RANDOM, 0) == 0 && pdiol_hint(writing, AP_SEQUENTIAL, FINAL_WRITE) == 0);
    CHECK_FAILS(EINVAL, pdiol_fadvise(reading, -1, 0, POSIX_FADV_WILLNEED) == -1);
    CHECK_FAILS(EINVAL, pdiol_fadvise(reading, 0, -1, POSIX_FADV_WILLNEED) == -1);
    CHECK_FAILS(EINVAL, pdiol_fadvise(reading, 0, 0, 17) == -1);
    for (int advice = POSIX_FADV_NORMAL; advice <= POSIX_FADV_NOREUSE; advice++)
        CHECK(pdiol_fadvise(reading, 3, advice % 2, advice) == 0);
    CHECK(pdiol_getc(reading) != EOF && pdiol_fseek(reading, 0, SEEK_SET) == 0);
    CHECK_FAILS(EEXIST, pdiol_fopen("refusals", "wx") == NULL);
    CHECK_FAILS(EINVAL, pdiol_stat("refusals", NULL) == -1);
    CHECK(pdiol_fclose(reading) == 0 && pdiol_fclose(writing) == 0);

    /* A program that ignores a NULL from pdiol_fopen gets errors, and its loops end. */
    CHECK_FAILS(EBADF, pdiol_fread(&byte, 1, 1, NULL) == -1);
    CHECK_FAILS(EBADF, pdiol_getc(NULL) == EOF);
    CHECK_FAILS(EBADF, pdiol_putc('x', NULL) == EOF);
    CHECK_FAILS(EBADF, pdiol_getc_unlocked(NULL) == EOF);
    CHECK_FAILS(EBADF, pdiol_putc_unlocked('x', NULL) == EOF);
    CHECK_FAILS(EBADF, pdiol_feof(NULL) != 0);
    CHECK_FAILS(EBADF, pdiol_fclose(NULL) == -1);
    CHECK_FAILS(EBADF, pdiol_hint(NULL, AP_SEQUENTIAL, 0) == -1);
}

static void temporary(void)
{
    static char buffer[PAGE];
    PFS_FILE *file = pdiol_fopen("temporary", "w+");
    CHECK(file != NULL && pdiol_hint(file, AP_SEQUENTIAL, TEMPORARY_FILE) == 0);
    for (int i = 0; i < 32; i++)
        CHECK(pdiol_fwrite(buffer, sizeof buffer, 1, file) == 1);
    pdiol_rewind(file);
    for (int i = 0; i < 32; i++)
        CHECK(pdiol_fread(buffer, sizeof buffer, 1, file) == 1);
    CHECK(pdiol_fclose(file) == 0 && pdiol_unlink("temporary") == 0);
}

int main(int argc, char **argv)
{
    static PFS_FILE *left_open;

    CHECK_FAILS(EBADF, pdiol_fopen("x", "w") == NULL);
    CHECK_FAILS(EBADF, finalize_pdiol() == -1);
    CHECK(initialize_pdiol(&argc, &argv) == 0);
    CHECK_FAILS(EINVAL, initialize_pdiol(&argc, &argv) == -1);
    CHECK(argc == 2 && strcmp(argv[1], "argument") == 0 && argv[2] == NULL);

    sizes();
    lines();
    end_of_file();
    update();
    beyond_four_gibibytes();
    names();
    refusals();
    temporary();

    /* finalize_pdiol writes data of open files. Such a file can still be closed, but not used. */
    left_open = pdiol_fopen("left", "w");
    CHECK(left_open != NULL && pdiol_fputs("left open", left_open) >= 0);
    CHECK(pdiol_fflush(NULL) == 0 && pdiol_putc('.', left_open) == '.');
    CHECK(finalize_pdiol() == 0);
    CHECK_FAILS(EBADF, pdiol_putc('x', left_open) == EOF);
    CHECK(strstr(pdiol_strerror(), "left: ") == pdiol_strerror());
    CHECK_FAILS(EBADF, pdiol_fclose(left_open) == -1);

    /* A new session can be started, without a command line. */
    CHECK(initialize_pdiol(NULL, NULL) == 0);
    pdiol_state_struct state;
    CHECK(pdiol_stat("left", &state) == 0 && state.size == 10);
    left_open = pdiol_fopen("at exit", "w");
    CHECK(left_open != NULL && pdiol_fputs("written at exit", left_open) >= 0);
    return 0;
}
