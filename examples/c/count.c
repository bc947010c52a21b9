/* count.c - counts bytes, words and lines of a PDIOL file, byte by byte, as wc does.
 *
 *     count -window 16 - notes.txt
 *
 * Compile with: cc count.c $(pkg-config --cflags --libs pdiol) -o count
 */
#include <ctype.h>
#include <inttypes.h>
#include <pdiol.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    uint64_t bytes = 0, words = 0, lines = 0;
    int byte, in_word = 0;

    if (initialize_pdiol(&argc, &argv) != 0) {
        fprintf(stderr, "%s: %s\n", argv[0], pdiol_strerror());
        return 1;
    }
    if (argc != 2) {
        fprintf(stderr, "usage: %s [PDIOL options -] pdiol_file\n", argv[0]);
        return 2;
    }
    PFS_FILE *file = pdiol_fopen(argv[1], "r");
    if (file == NULL) {
        fprintf(stderr, "%s: %s\n", argv[0], pdiol_strerror());
        return 1;
    }

    while ((byte = pdiol_getc(file)) != EOF) {
        bytes++;
        lines += byte == '\n';
        words += !in_word && !isspace(byte);
        in_word = !isspace(byte);
    }
    if (pdiol_ferror(file)) {
        fprintf(stderr, "%s: %s\n", argv[0], pdiol_strerror());
        return 1;
    }

    printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n", lines, words, bytes, argv[1]);
    pdiol_fclose(file);
    return finalize_pdiol() != 0;
}
