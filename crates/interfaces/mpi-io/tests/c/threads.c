/* Two threads of a process read through its file pointer: each number is read once. They also write in atomic mode. */
#include <pthread.h>
#include <unistd.h>

#include "check.h"

enum { COUNT = 2000, THREADS = 2, WIDE = 3000, ROUNDS = 10 };

static MPI_File file;
static unsigned char seen[COUNT];

static void *read_numbers(void *none)
{
    MPI_Status status;
    int number, count = 1;
    while (count) {
        OK(MPI_File_read(file, &number, 1, MPI_INT, &status));
        MPI_Get_count(&status, MPI_INT, &count);
        if (count) {
            CHECK(number >= 0 && number < COUNT);
            __atomic_fetch_add(&seen[number], 1, __ATOMIC_RELAXED);
        }
    }
    return none;
}

/* Writes one letter to the whole range, which has two pieces in the file. */
static void *write_letters(void *letter)
{
    char letters[WIDE], back[WIDE];
    MPI_Status status;
    memset(letters, *(char *)letter, WIDE);
    for (int round = 0; round < ROUNDS; round++) {
        OK(MPI_File_write_at(file, 0, letters, WIDE, MPI_BYTE, &status));
        OK(MPI_File_read_at(file, 0, back, WIDE, MPI_BYTE, &status));
        for (int i = 1; i < WIDE; i++) {
            CHECK(back[i] == back[0]);
        }
    }
    return NULL;
}

static void both(void *(*run)(void *), void *first, void *second)
{
    pthread_t threads[THREADS];
    void *given[THREADS] = {first, second};
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, run, given[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}

int main(int argc, char **argv)
{
    int provided, numbers[COUNT];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    alarm(40);
    if (provided < MPI_THREAD_MULTIPLE) {
        return end();
    }
    for (int i = 0; i < COUNT; i++) {
        numbers[i] = i;
    }
    OK(MPI_File_open(MPI_COMM_WORLD, "starfish:mpi/threads", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_write_at_all(file, 0, numbers, COUNT * sizeof(int), MPI_BYTE, MPI_STATUS_IGNORE));
    both(read_numbers, NULL, NULL);
    for (int i = 0; i < COUNT; i++) {
        CHECK(seen[i] == 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    /* The view has 500 of every 1000 bytes. */
    MPI_Datatype half, view;
    MPI_Type_contiguous(500, MPI_BYTE, &half);
    MPI_Type_create_resized(half, 0, 1000, &view);
    MPI_Type_commit(&view);
    OK(MPI_File_set_view(file, 0, MPI_BYTE, view, "native", MPI_INFO_NULL));
    OK(MPI_File_set_atomicity(file, 1));
    char letters[] = {(char)('a' + rank), (char)('A' + rank)};
    both(write_letters, &letters[0], &letters[1]);
    OK(MPI_File_close(&file));
    return end();
}
