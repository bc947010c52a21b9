/* fork.c - a process forked from one that records has no recording until it starts one. */
#include "check.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static int in_parent, in_child;
static volatile int is_over;

/* Declares states, names its thread and records values until IS_OVER, so that a fork can interrupt each of them. */
static void *disturb(void *argument)
{
    for (int i = 0; !is_over; i++) {
        char name[20];
        snprintf(name, sizeof name, "state %d", i % 1000);
        CHECK(tlv_state(name, NULL, TLV_RED) >= 0 && tlv_thread(name) == 0);
        CHECK(tlv_count(0, i) == 0 || errno == ENOBUFS);
    }
    return argument;
}

/* Runs WORK in a forked child and returns its exit status. A signal ends a child that hangs. */
static int forked(void (*work)(void))
{
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(60);
        work();
        exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void do_nothing(void)
{
    CHECK_FAILS(EBADF, "forked", tlv_begin(in_child) == -1);
    CHECK_FAILS(EBADF, "forked", TLV_Record(1) == -1);
    CHECK_FAILS(EBADF, "forked", TLV_Finalize() == -1);
}

static void run_another(void)
{
    execlp("true", "true", (char *)NULL);
}

static const char *name_of_recording = "fork";

static void record_anew(void)
{
    CHECK(TLV_Initialize(name_of_recording) == 0);
    CHECK(tlv_thread("child") == 0);
    CHECK(tlv_begin(in_child) == 0 && tlv_end(in_child) == 0);
    CHECK(tlv_state("declared in the child", NULL, TLV_RED) >= 0);
    CHECK(TLV_Finalize() == 0);
}

int main(void)
{
    pthread_t other;
    in_parent = tlv_state("in parent", NULL, TLV_RED);
    in_child = tlv_state("in child", NULL, TLV_BLUE);
    CHECK(tlv_counter("disturbance", NULL) == 0);
    CHECK(TLV_Initialize("fork") == 0);
    CHECK(pthread_create(&other, NULL, disturb, NULL) == 0);
    CHECK(tlv_begin(in_parent) == 0);
    for (int i = 0; i < 20; i++) {
        CHECK(forked(do_nothing) == 0);
        CHECK(forked(run_another) == 0);
    }
    CHECK(forked(record_anew) == 0);
    CHECK(tlv_end(in_parent) == 0);
    is_over = 1;
    CHECK(pthread_join(other, NULL) == 0);
    CHECK(TLV_Finalize() == 0);
    /* A child can start a recording also if its parent is not recording. */
    name_of_recording = "after";
    CHECK(forked(record_anew) == 0);
    return 0;
}
