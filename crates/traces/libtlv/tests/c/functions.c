/* functions.c - every function behaves as documented. The test that runs this program checks the trace. */
#include "check.h"

#include <limits.h>
#include <pthread.h>

enum { OPEN = 10, OPEN_END = 20, MINUS = -5, MINUS_END = INT_MAX };

static int outer, inner, items, file, ratio, queue, load;

static void *not_added(void *argument)
{
    CHECK_FAILS(ESRCH, "TLV_AddThread", TLV_Record(OPEN) == -1);
    CHECK(TLV_AddThread() == 0 && TLV_AddThread() == 0);
    CHECK(TLV_Record(OPEN) == 0 && TLV_Record(OPEN_END) == 0);
    CHECK(tlv_thread("added") == 0);
    return argument;
}

static void *adds_itself(void *flow)
{
    CHECK(tlv_begin(outer) == 0);
    CHECK(tlv_flow_in(*(uint64_t *)flow) == 0);
    CHECK(tlv_end(outer) == 0);
    CHECK(tlv_thread("itself") == 0);
    return NULL;
}

static void run(void *(*work)(void *), void *argument)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, work, argument) == 0 && pthread_join(thread, NULL) == 0);
}

static void before(void)
{
    CHECK(tlv_strerror() != NULL && tlv_strerror()[0] == '\0');
    CHECK_FAILS(EBADF, "TLV_Initialize", TLV_Record(OPEN) == -1);
    CHECK_FAILS(EBADF, "TLV_Initialize", TLV_AddThread() == -1);
    CHECK_FAILS(EBADF, "TLV_Initialize", TLV_Finalize() == -1);
    CHECK_FAILS(EBADF, "TLV_Initialize", tlv_begin(0) == -1);
    CHECK_FAILS(EBADF, "TLV_Initialize", tlv_thread("name") == -1);
    CHECK_FAILS(EINVAL, "NULL", TLV_Initialize(NULL) == -1);
    CHECK_FAILS(EINVAL, "no name", TLV_Initialize("") == -1);
    CHECK_FAILS(ENOENT, "/nonexistent/x.tlv", TLV_Initialize("/nonexistent/x") == -1);
}

static void declare(void)
{
    CHECK(TLV_AddState(OPEN, "open", OPEN_END, "open, end", TLV_RED) == 0);
    CHECK(TLV_AddState(OPEN, "open", OPEN_END, "open, end", TLV_RED) == 0);
    CHECK(TLV_AddState(MINUS, "minus", MINUS_END, "minus, end", TLV_ANY_COLOUR) == 0);
    CHECK_FAILS(EINVAL, "event 10", TLV_AddState(OPEN, "other", 30, "end", TLV_RED) == -1);
    CHECK_FAILS(EINVAL, "event 40", TLV_AddState(40, "other", 40, "end", TLV_RED) == -1);
    CHECK_FAILS(EINVAL, "NULL", TLV_AddState(40, NULL, 50, "end", TLV_RED) == -1);
    CHECK_FAILS(EINVAL, "NULL", TLV_AddState(40, "other", 50, NULL, TLV_RED) == -1);
    CHECK_FAILS(EINVAL, "colour", TLV_AddState(40, "other", 50, "end", 0x1000000) == -1);
    outer = tlv_state("outer", NULL, TLV_BLUE);
    inner = tlv_state("inner \xc3\xa4", "kind", 0x123456);
    items = tlv_argument("items");
    file = tlv_argument("file");
    ratio = tlv_argument("ratio");
    queue = tlv_counter("queue", "requests");
    load = tlv_counter("load", NULL);
    CHECK(outer >= 0 && inner >= 0 && outer != inner && tlv_state("outer", NULL, TLV_BLUE) == outer);
    CHECK(items >= 0 && items != file && file != ratio && tlv_argument("items") == items);
    CHECK(queue >= 0 && queue != load && tlv_counter("queue", "requests") == queue);
    CHECK_FAILS(EINVAL, "NULL", tlv_state(NULL, NULL, TLV_BLUE) == -1);
    CHECK_FAILS(EINVAL, "no name", tlv_counter("", NULL) == -1);
    CHECK_FAILS(EINVAL, "NULL", tlv_argument(NULL) == -1);
}

static void record(void)
{
    CHECK(tlv_begin(outer) == 0 && tlv_number(items, INT64_MIN) == 0);
    CHECK(tlv_begin(inner) == 0 && tlv_text(file, "a\xff/b") == 0 && tlv_real(ratio, 0.25) == 0);
    CHECK(tlv_end(inner) == 0 && tlv_end(outer) == 0);
    CHECK(tlv_count(queue, 3) == 0 && tlv_count(queue, -1) == 0 && tlv_count_real(load, 1.5) == 0);
    CHECK(TLV_Record(MINUS) == 0 && TLV_Record(MINUS_END) == 0);
    CHECK(TLV_Record(77) == 0); /* undeclared */
    CHECK_FAILS(EINVAL, "declared", tlv_begin(-1) == -1);
    CHECK_FAILS(EINVAL, "declared", tlv_count(-1, 0) == -1);
    CHECK_FAILS(EINVAL, "NULL", tlv_text(file, NULL) == -1);
}

int main(void)
{
    before();
    declare();
    CHECK(TLV_Initialize("functions") == 0);
    CHECK_FAILS(EBUSY, "already", TLV_Initialize("functions") == -1);
    record();
    uint64_t flow = tlv_flow();
    CHECK(flow != tlv_flow());
    CHECK(tlv_begin(outer) == 0 && tlv_flow_out(flow) == 0 && tlv_end(outer) == 0);
    run(not_added, NULL);
    run(adds_itself, &flow);
    CHECK(tlv_begin(inner) == 0); /* unfinished */
    CHECK(TLV_Finalize() == 0);
    CHECK_FAILS(EBADF, "TLV_Initialize", TLV_Record(OPEN) == -1);
    CHECK_FAILS(EBADF, "TLV_Initialize", TLV_Finalize() == -1);

    /* Another recording contains the earlier declarations. */
    CHECK(TLV_Initialize("again.tlv") == 0);
    CHECK(TLV_Record(OPEN) == 0 && TLV_Record(OPEN_END) == 0);
    CHECK(TLV_Finalize() == 0);
    return 0;
}
