/* ends.c - threads that end without a library call, in a process that ends as its argument says: by exit, by return
 * from main, by _exit after the writer has run, or by a signal of the test. */
#include "check.h"

#include <pthread.h>
#include <unistd.h>

static int work;

static void *record(void *argument)
{
    CHECK(tlv_begin(work) == 0);
    CHECK(tlv_end(work) == 0);
    CHECK(tlv_begin(work) == 0);
    if (argument != NULL)
        pthread_exit(NULL);
    return NULL;
}

static void one_after_another(int number)
{
    for (int i = 0; i < number; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, record, i % 2 ? &work : NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "return";
    CHECK(TLV_Initialize("ends") == 0);
    work = tlv_state("work", NULL, TLV_ANY_COLOUR);
    one_after_another(20);
    if (strcmp(how, "exit") == 0)
        exit(0);
    if (strcmp(how, "return") == 0)
        return 0;
    sleep(1);
    if (strcmp(how, "_exit") == 0)
        _exit(0);
    for (;;) {
        record(NULL);
        CHECK(tlv_end(work) == 0);
        if (write(STDOUT_FILENO, "recorded\n", 9) != 9)
            return 1;
        usleep(1000);
    }
}
