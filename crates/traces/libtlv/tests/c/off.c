/* off.c - with TLV=off every call succeeds, and no file is written. */
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

/* A forked process may start a recording, as if its parent were recording. */
static void fork_off(void)
{
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(TLV_Record(1) == 0 && TLV_Finalize() == 0 && TLV_Record(1) == 0);
        CHECK(TLV_Initialize("child") == 0 && TLV_Record(1) == 0 && TLV_Finalize() == 0);
        CHECK_FAILS(EBADF, "TLV_Initialize", TLV_Record(1) == -1);
        exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
    CHECK_FAILS(EBADF, "TLV_Initialize", TLV_Record(1) == -1);
    CHECK(TLV_Initialize("off") == 0);
    CHECK(tlv_off_()); /* the program sees the library's switch */
    CHECK_FAILS(EBUSY, "already", TLV_Initialize("off") == -1);
    int state = tlv_state("state", NULL, TLV_RED);
    CHECK(state >= 0 && TLV_AddState(1, "a", 2, "b", TLV_RED) == 0);
    CHECK(TLV_AddThread() == 0 && TLV_Record(1) == 0 && (TLV_Record)(1) == 0);
    CHECK(tlv_begin(state) == 0 && (tlv_begin)(state) == 0 && tlv_end(state) == 0);
    CHECK(tlv_number(0, 1) == 0 && tlv_real(0, 1) == 0 && tlv_text(0, "text") == 0);
    CHECK(tlv_count(0, 1) == 0 && tlv_count_real(0, 1) == 0);
    CHECK(tlv_flow_out(1) == 0 && tlv_flow_in(1) == 0 && tlv_thread("name") == 0);
    fork_off();
    CHECK(TLV_Finalize() == 0);
    CHECK(!tlv_off_());
    CHECK_FAILS(EBADF, "TLV_Initialize", TLV_Record(1) == -1);
    return 0;
}
