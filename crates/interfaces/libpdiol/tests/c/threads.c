/* threads.c - threads share a file: every call is atomic, and with flockfile several calls together are. */
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define THREADS 4
#define RECORDS 5000

static PFS_FILE *file;
static atomic_long bytes_read;

static void *write_records(void *argument)
{
    char record[40];
    int number = (int)(intptr_t)argument;
    for (int i = 0; i < RECORDS; i++) {
        snprintf(record, sizeof record, "thread %d: %8d\n", number, i);
        if (i % 3 == 0) {
            pdiol_flockfile(file);
            for (char *byte = record; *byte; byte++)
                CHECK(i % 2 ? pdiol_putc(*byte, file) : pdiol_putc_unlocked(*byte, file) == *byte);
            pdiol_funlockfile(file);
        } else {
            CHECK(pdiol_fputs(record, file) >= 0);
        }
    }
    return NULL;
}

static void *read_bytes(void *argument)
{
    long count = 0;
    (void)argument;
    while (pdiol_getc(file) != EOF)
        count++;
    bytes_read += count;
    return NULL;
}

static void *try_lock(void *argument)
{
    (void)argument;
    return (void *)(intptr_t)pdiol_ftrylockfile(file);
}

static void *flush_all(void *argument)
{
    (void)argument;
    return (void *)(intptr_t)pdiol_fflush(NULL);
}

/* Flushing all files succeeds even if one of them is closed at the same time. */
static void close_while_all_are_flushed(void)
{
    PFS_FILE *closed;
    pthread_t other;
    void *failed;

    file = pdiol_fopen("stays", "w");
    closed = pdiol_fopen("closed", "w");
    CHECK(file != NULL && closed != NULL && pdiol_fputs("text", closed) >= 0);
    pdiol_flockfile(file);
    CHECK(pthread_create(&other, NULL, flush_all, NULL) == 0);
    /* Give the flush time to reach the first file, where it blocks. */
    usleep(200000);
    CHECK(pdiol_fclose(closed) == 0);
    pdiol_funlockfile(file);
    CHECK(pthread_join(other, &failed) == 0 && failed == NULL);
    CHECK(pdiol_fclose(file) == 0);
}

static void run(void *(*work)(void *))
{
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(int argc, char **argv)
{
    int next[THREADS] = {0};
    char line[100];
    pthread_t other;
    void *busy;

    CHECK(initialize_pdiol(&argc, &argv) == 0);
    file = pdiol_fopen("records", "w");
    CHECK(file != NULL);
    run(write_records);
    CHECK(pdiol_fclose(file) == 0);

    file = pdiol_fopen("records", "r");
    CHECK(file != NULL);
    while (pdiol_fgets(line, sizeof line, file) != NULL) {
        int thread, record;
        CHECK(sscanf(line, "thread %d: %d\n", &thread, &record) == 2 && strlen(line) == 19);
        CHECK(record == next[thread]++);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(next[i] == RECORDS);

    /* The main thread has owned the file until this point. */
    pdiol_rewind(file);
    CHECK(pdiol_getc(file) == 't');
    run(read_bytes);
    CHECK(bytes_read + 1 == (long)THREADS * RECORDS * 19);
    pdiol_fclose(file);

    close_while_all_are_flushed();

    file = pdiol_fopen("records", "r");
    pdiol_flockfile(file);
    CHECK(pdiol_ftrylockfile(file) == 0);
    pdiol_funlockfile(file);
    CHECK(pthread_create(&other, NULL, try_lock, NULL) == 0 && pthread_join(other, &busy) == 0 && busy != NULL);
    CHECK(pdiol_getc(file) == 't' && pdiol_getc_unlocked(file) == 'h');
    pdiol_funlockfile(file);
    CHECK(pthread_create(&other, NULL, try_lock, NULL) == 0 && pthread_join(other, &busy) == 0 && busy == NULL);
    /* That thread has ended without unlocking, so no thread can use the file: exit without closing it. */
    CHECK(pdiol_strerror() != NULL);
    _Exit(0);
}
