/* putc.c - measures the time to write a byte: pdiol_putc compared with putc and putc_unlocked.
 *
 *     cc -O2 -D_GNU_SOURCE putc.c $(pkg-config --cflags --libs pdiol) -o putc
 *     ./putc -write_cache 64M - local.dat striped.dat
 *
 * Both files are written from the beginning in several rounds, and the best round counts. A time is measured for each
 * 4096 bytes, and "99 %" is the 99th percentile of these times, per byte. Without -write_cache the page cache buffers the
 * writes.
 */
#include <pdiol.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS 5
#define STRETCH 4096
#define STRETCHES 4096

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int ascending(const void *one, const void *other)
{
    double difference = *(const double *)one - *(const double *)other;
    return (difference > 0) - (difference < 0);
}

/* Writes to FILE with PUT, and rewinds it with REWIND. */
#define MEASURE(NAME, FILE, PUT, REWIND)                                                        \
    do {                                                                                        \
        double best = 1e9, best_most = 1e9;                                                     \
        for (int round = 0; round < ROUNDS; round++) {                                          \
            static double took[STRETCHES];                                                      \
            double sum = 0;                                                                     \
            for (int stretch = 0; stretch < STRETCHES; stretch++) {                             \
                double start = now();                                                           \
                for (int byte = 0; byte < STRETCH; byte++)                                      \
                    if (PUT(byte & 255, FILE) == EOF) {                                         \
                        fprintf(stderr, "%s: the write failed\n", NAME);                    \
                        return 1;                                                               \
                    }                                                                           \
                took[stretch] = (now() - start) * 1e9 / STRETCH;                                \
                sum += took[stretch];                                                           \
            }                                                                                   \
            qsort(took, STRETCHES, sizeof took[0], ascending);                                  \
            best = sum / STRETCHES < best ? sum / STRETCHES : best;                             \
            best_most = took[STRETCHES * 99 / 100] < best_most ? took[STRETCHES * 99 / 100] : best_most; \
            REWIND(FILE);                                                                       \
        }                                                                                       \
        printf("%-24s mean %6.2f ns a byte, 99 %% within %6.2f ns\n", NAME, best, best_most);   \
        fflush(stdout);                                                                         \
    } while (0)

int main(int argc, char **argv)
{
    if (initialize_pdiol(&argc, &argv) != 0 || argc != 3) {
        fprintf(stderr, "putc [PDIOL options -] LOCAL STRIPED: %s\n", pdiol_strerror());
        return 2;
    }
    FILE *local = fopen(argv[1], "w");
    PFS_FILE *striped = pdiol_fopen(argv[2], "w");
    if (local == NULL || striped == NULL) {
        fprintf(stderr, "putc: cannot open %s and %s\n", argv[1], argv[2]);
        return 1;
    }
    MEASURE("putc", local, putc, rewind);
    MEASURE("putc_unlocked", local, putc_unlocked, rewind);
    MEASURE("pdiol_putc", striped, pdiol_putc, pdiol_rewind);
    if (fclose(local) != 0 || pdiol_fclose(striped) != 0 || finalize_pdiol() != 0) {
        fprintf(stderr, "putc: %s\n", pdiol_strerror());
        return 1;
    }
    return 0;
}
