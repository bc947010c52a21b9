/* getc.c - measures the time to read a byte: pdiol_getc compared with getc and getc_unlocked.
 *
 *     cc -O2 -D_GNU_SOURCE getc.c $(pkg-config --cflags --libs pdiol) -pthread -o getc
 *     fs2pfs local.dat striped.dat
 *     ./getc local.dat striped.dat
 *
 * Each file is read completely in several rounds, and the best round counts. Use files of 256 MiB on disks in memory.
 * libc takes no lock while the process has one thread, so getc is measured before and after a second thread exists.
 */
#include <pdiol.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS 3

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static unsigned long sum;

/* Reads FILE with GET, and rewinds it with REWIND. */
#define MEASURE(NAME, FILE, GET, REWIND)                                                \
    do {                                                                                \
        double best = 1e9;                                                              \
        unsigned long bytes = 0;                                                        \
        for (int round = 0; round < ROUNDS; round++) {                                  \
            double start = now();                                                       \
            int byte;                                                                   \
            bytes = 0;                                                                  \
            while ((byte = GET(FILE)) != EOF) {                                         \
                sum += (unsigned long)byte;                                             \
                bytes++;                                                                \
            }                                                                           \
            double took = now() - start;                                                \
            best = took < best ? took : best;                                           \
            REWIND(FILE);                                                               \
        }                                                                               \
        printf("%-52s %6.2f ns a byte (%lu bytes)\n", NAME, best * 1e9 / (double)bytes, bytes); \
        fflush(stdout);                                                                 \
    } while (0)

static void *use(void *file)
{
    pdiol_getc((PFS_FILE *)file);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t other;
    FILE *local = argc > 1 ? fopen(argv[1], "r") : NULL;
    if (local == NULL || argc != 3) {
        fprintf(stderr, "usage: %s local_file pdiol_file\n", argv[0]);
        return 2;
    }
    MEASURE("getc, the process has one thread", local, getc, rewind);
    MEASURE("getc_unlocked, the process has one thread", local, getc_unlocked, rewind);

    if (initialize_pdiol(NULL, NULL) != 0) {
        fprintf(stderr, "%s\n", pdiol_strerror());
        return 1;
    }
    PFS_FILE *striped = pdiol_fopen(argv[2], "r");
    if (striped == NULL) {
        fprintf(stderr, "%s\n", pdiol_strerror());
        return 1;
    }
    MEASURE("pdiol_getc, one thread uses the file", striped, pdiol_getc, pdiol_rewind);
    MEASURE("pdiol_getc_unlocked", striped, pdiol_getc_unlocked, pdiol_rewind);
    MEASURE("getc, the process has several threads", local, getc, rewind);
    MEASURE("getc_unlocked, the process has several threads", local, getc_unlocked, rewind);

    if (pthread_create(&other, NULL, use, striped) != 0 || pthread_join(other, NULL) != 0)
        return 1;
    pdiol_rewind(striped);
    MEASURE("pdiol_getc, another thread has used the file", striped, pdiol_getc, pdiol_rewind);
    pdiol_fclose(striped);
    fclose(local);
    return finalize_pdiol() != 0 || sum == 0;
}
