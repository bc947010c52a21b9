/* pfs2fs.c - copies a PDIOL file to a normal file, or to standard output.
 *
 *     pfs2fs -disk_number 4 -prefetch 1 -w 0 - sort.txt sorttxt.bak
 *
 * Compile with: cc pfs2fs.c $(pkg-config --cflags --libs pdiol) -o pfs2fs
 */
#include <pdiol.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>

#define BUFFERSIZE 655360

int main(int argc, char **argv)
{
    static char buffer[BUFFERSIZE];

    if (initialize_pdiol(&argc, &argv) != 0) {
        fprintf(stderr, "%s: %s\n", argv[0], pdiol_strerror());
        return 1;
    }
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: %s [PDIOL options -] pdiol_file [file]\n", argv[0]);
        return 2;
    }

    PFS_FILE *in = pdiol_fopen(argv[1], "r");
    if (in == NULL) {
        fprintf(stderr, "%s: %s\n", argv[0], pdiol_strerror());
        return 1;
    }
    pdiol_hint(in, AP_SEQUENTIAL, 0);

    FILE *out = argc == 3 ? fopen(argv[2], "w") : stdout;
    if (out == NULL) {
        fprintf(stderr, "%s: %s: %s\n", argv[0], argv[2], strerror(errno));
        return 1;
    }

    int failed = 0;
    while (!pdiol_feof(in) && !failed) {
        ssize_t count = pdiol_fread(buffer, 1, BUFFERSIZE, in);
        if (count < 0) {
            fprintf(stderr, "%s: %s\n", argv[0], pdiol_strerror());
            failed = 1;
        } else if (fwrite(buffer, 1, (size_t)count, out) != (size_t)count) {
            fprintf(stderr, "%s: writing: %s\n", argv[0], strerror(errno));
            failed = 1;
        }
    }

    if (fclose(out) != 0 && !failed) {
        fprintf(stderr, "%s: writing: %s\n", argv[0], strerror(errno));
        failed = 1;
    }
    pdiol_fclose(in);
    finalize_pdiol();
    return failed;
}
