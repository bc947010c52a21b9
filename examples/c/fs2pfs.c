/* fs2pfs.c - copies a normal file, or standard input, to a PDIOL file.
 *
 *     fs2pfs -d 4 - sort.txt sort.txt
 *     sort sort.txt | fs2pfs sorted.txt
 *
 * Compile with: cc fs2pfs.c $(pkg-config --cflags --libs pdiol) -o fs2pfs
 */
#include <errno.h>
#include <pdiol.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFERSIZE 655360

static char *program;

static void fail(const char *why)
{
    fprintf(stderr, "%s: %s\n", program, why);
    exit(1);
}

int main(int argc, char **argv)
{
    static char buffer[BUFFERSIZE];
    size_t count;

    program = argv[0];
    if (initialize_pdiol(&argc, &argv) != 0)
        fail(pdiol_strerror());
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: %s [PDIOL options -] [file] pdiol_file\n", program);
        return 2;
    }

    FILE *in = argc == 3 ? fopen(argv[1], "r") : stdin;
    if (in == NULL)
        fail(strerror(errno));
    PFS_FILE *out = pdiol_fopen(argv[argc - 1], "w");
    if (out == NULL)
        fail(pdiol_strerror());

    while ((count = fread(buffer, 1, BUFFERSIZE, in)) > 0)
        if (pdiol_fwrite(buffer, 1, count, out) != (ssize_t)count)
            fail(pdiol_strerror());
    if (ferror(in))
        fail(strerror(errno));

    /* Buffered writes can fail until here. */
    if (pdiol_fclose(out) != 0 || finalize_pdiol() != 0)
        fail(pdiol_strerror());
    fclose(in);
    return 0;
}
