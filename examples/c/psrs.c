/* psrs - sorts numbers in parallel by regular sampling, and records the activities of each thread.
 *
 *     cc psrs.c $(pkg-config --cflags --libs tlv) -pthread -o psrs
 *     ./psrs 1000000 4 8 && starfish trace summary psrs.tlv
 *
 * This is the sample session of the Thread Log Viewer (appendix C of the thesis on PDIOL), with corrected names of events and
 * the missing code added. It is valid C99 and C++11.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tlv.h>

/* Events that begin and end the states, and their names */
enum tlv_states { INIT, INIT_END, P1, P1_END, P2, P2_END, P3, P3_END, P4, P4_END };

static const char *const tlv_state_names[] = {"INIT",   "INIT_END", "PHASE1", "P1_END", "PHASE2",
                                              "P2_END", "PHASE3",   "P3_END", "PHASE4", "P4_END"};

#define MAX_THREADS 64

struct thread {
    pthread_t thread_id;
    int number;
    int start, end;               /* its part of the array */
    int *parts[MAX_THREADS];      /* parts received from each thread */
    int parts_len[MAX_THREADS];
    int *local_array;             /* merged and sorted parts */
    int local_array_len;
};

static struct thread threads[MAX_THREADS];
static int thread_number, over_sampling, length;
static int *array, *samples, pivots[MAX_THREADS];

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_here = PTHREAD_COND_INITIALIZER;
static int arrived, meetings;

static void barrier(void)
{
    pthread_mutex_lock(&mutex);
    int meeting = meetings;
    if (++arrived == thread_number) {
        arrived = 0;
        meetings++;
        pthread_cond_broadcast(&all_here);
    }
    while (meeting == meetings)
        pthread_cond_wait(&all_here, &mutex);
    pthread_mutex_unlock(&mutex);
}

static void *allocate(size_t number)
{
    void *room = malloc((number + 1) * sizeof(int));
    if (room == NULL) {
        fprintf(stderr, "failure to allocate memory\n");
        exit(1);
    }
    return room;
}

static int compare(const void *a, const void *b)
{
    int left = *(const int *)a, right = *(const int *)b;
    return (left > right) - (left < right);
}

static void sort(int *numbers, int count)
{
    qsort(numbers, (size_t)count, sizeof(int), compare);
}

static void *slave(void *args)
{
    struct thread *mine = (struct thread *)args;
    int seq = mine->number;

    /* TLV_Initialize has added the main thread; the other threads add themselves. */
    if (seq != 0)
        TLV_AddThread();

    TLV_Record(P1);
    sort(array + mine->start, mine->end - mine->start);
    for (int i = 0; i < over_sampling; i++) /* sampling */
        samples[seq * over_sampling + i] =
            array[mine->start + (int)((long long)i * (mine->end - mine->start) / over_sampling)];
    barrier();
    TLV_Record(P1_END);

    if (seq == 0) {
        TLV_Record(P2);
        sort(samples, thread_number * over_sampling);
        for (int i = 1; i < thread_number; i++)
            pivots[i - 1] = samples[i * over_sampling];
        TLV_Record(P2_END);
    }
    barrier();

    TLV_Record(P3); /* partition & distribute parts */
    int index = mine->start;
    for (int i = 0; i < thread_number; i++) {
        int count = 0;
        while (index + count < mine->end && (i == thread_number - 1 || array[index + count] <= pivots[i]))
            count++;
        threads[i].parts[seq] = (int *)allocate((size_t)count);
        threads[i].parts_len[seq] = count;
        memcpy(threads[i].parts[seq], array + index, (size_t)count * sizeof(int));
        index += count;
    }
    barrier();
    TLV_Record(P3_END);

    TLV_Record(P4);
    for (int i = 0; i < thread_number; i++)
        mine->local_array_len += mine->parts_len[i];
    mine->local_array = (int *)allocate((size_t)mine->local_array_len);
    for (int i = 0, at = 0; i < thread_number; at += mine->parts_len[i++]) {
        memcpy(mine->local_array + at, mine->parts[i], (size_t)mine->parts_len[i] * sizeof(int));
        free(mine->parts[i]);
    }
    sort(mine->local_array, mine->local_array_len);
    TLV_Record(P4_END);

    return NULL;
}

int main(int argc, char *argv[])
{
    length = argc > 1 ? atoi(argv[1]) : 0;
    thread_number = argc > 2 ? atoi(argv[2]) : 0;
    over_sampling = argc > 3 ? atoi(argv[3]) : 0;
    if (thread_number < 1 || thread_number > MAX_THREADS || over_sampling < 1 || length < thread_number) {
        fprintf(stderr, "usage: psrs LENGTH THREADS OVERSAMPLING (at most %d threads)\n", MAX_THREADS);
        return 2;
    }

    if (TLV_Initialize("psrs") != 0)
        fprintf(stderr, "not recorded: %s\n", tlv_strerror());

    TLV_AddState(INIT, tlv_state_names[INIT], INIT_END, tlv_state_names[INIT_END], TLV_RED);
    TLV_AddState(P1, tlv_state_names[P1], P1_END, tlv_state_names[P1_END], TLV_GREEN);
    TLV_AddState(P2, tlv_state_names[P2], P2_END, tlv_state_names[P2_END], TLV_BLUE);
    TLV_AddState(P3, tlv_state_names[P3], P3_END, tlv_state_names[P3_END], TLV_YELLOW);
    TLV_AddState(P4, tlv_state_names[P4], P4_END, tlv_state_names[P4_END], TLV_CYAN);

    TLV_Record(INIT);
    array = (int *)allocate((size_t)length);
    samples = (int *)allocate((size_t)(thread_number * over_sampling));
    for (int i = 0; i < length; i++)
        array[i] = rand();
    for (int i = 0; i < thread_number; i++) {
        threads[i].number = i;
        threads[i].start = (int)((long long)length * i / thread_number);
        threads[i].end = (int)((long long)length * (i + 1) / thread_number);
    }
    TLV_Record(INIT_END);

    for (int i = 1; i < thread_number; i++) {
        if (pthread_create(&threads[i].thread_id, NULL, slave, &threads[i]) != 0) {
            fprintf(stderr, "failure to start a thread\n");
            return 1;
        }
    }
    slave(&threads[0]);
    for (int i = 1; i < thread_number; i++)
        pthread_join(threads[i].thread_id, NULL);

    int index = 0;
    for (int i = 0; i < thread_number; i++) {
        memcpy(array + index, threads[i].local_array, (size_t)threads[i].local_array_len * sizeof(int));
        index += threads[i].local_array_len;
        free(threads[i].local_array);
    }

    TLV_Finalize();

    for (int i = 1; i < length; i++) {
        if (array[i - 1] > array[i]) {
            fprintf(stderr, "%d and %d are not in order\n", array[i - 1], array[i]);
            return 1;
        }
    }
    printf("%d numbers are in order\n", index);
    free(array);
    free(samples);
    return 0;
}
