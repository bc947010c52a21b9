/*
 * Requests: calls in flight, as generalized requests of the MPI library.
 *
 * No thread of the MPI library completes such a request, so the library has to ask us whether a call has ended. MPICH
 * asks about each request that the program tests or waits for, if the request was made with MPICH's own function
 * MPIX_Grequest_start. Open MPI calls all registered progress functions whenever it makes progress; the shim registers
 * one with the first request. The shim looks for both functions at run time, so that one shim works with all releases
 * of both libraries. With neither function, the MPI call that makes a request blocks until its transfer has ended, and
 * returns a completed request.
 *
 * The thread that finds a call ended removes its request from the list, fills the memory, and completes the request.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "shim.h"

/* A request. It exists until it is complete and the MPI library has freed it. */
struct request {
    struct transfer transfer;
    struct our_file *file;
    MPI_Request handle;
    int code;
    size_t moved;
    /* Number of holders: the MPI library, and the thread that will complete the request. The last one frees it. */
    atomic_int holders;
    struct request *next;
    /* The request that this thread was completing when it began to complete this one: the error handler of the former
       called the shim. */
    struct request *outer;
};

/* Requests that no thread has begun to complete, in the order of their creation. */
static struct request *first, **end = &first;
static atomic_int under_way;
static _Thread_local struct request *completed_here;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void starfish_shim_set_status(MPI_Status *status, size_t bytes)
{
    if (status != MPI_STATUS_IGNORE) {
        PMPI_Status_set_elements_x(status, MPI_BYTE, (MPI_Count)bytes);
        PMPI_Status_set_cancelled(status, 0);
    }
}

static void enter(struct request *request)
{
    pthread_mutex_lock(&lock);
    *end = request;
    end = &request->next;
    atomic_fetch_add(&under_way, 1);
    pthread_mutex_unlock(&lock);
}

/* Selects requests in the list: of `file` or of any file, only `request` or any, only those whose call has ended or
   any. */
struct meant {
    const struct our_file *file;
    const struct request *request;
    int has_ended;
    /* True if the search stops at the first request that is not selected. */
    int is_first;
};

static int is_meant(const struct request *request, struct meant meant)
{
    return (!meant.file || request->file == meant.file) && (!meant.request || request == meant.request) &&
           (!meant.has_ended || starfish_mpi_is_done(request->transfer.call));
}

/* Removes the first selected request from the list and returns it, or NULL if there is none. The caller must complete
   it. */
static struct request *take(struct meant meant)
{
    struct request *found = NULL;
    pthread_mutex_lock(&lock);
    for (struct request **at = &first; *at; at = &(*at)->next) {
        if (is_meant(*at, meant)) {
            found = *at;
            *at = found->next;
            end = *at ? end : at;
            atomic_fetch_sub(&under_way, 1);
            break;
        }
        if (meant.is_first) {
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static int let_go(void *held)
{
    struct request *request = held;
    if (atomic_fetch_sub(&request->holders, 1) == 1) {
        free(request);
    }
    return MPI_SUCCESS;
}

/* Completes a request that was removed from the list. Waits for its call to end. */
static void complete(struct request *request)
{
    int class = starfish_shim_end(&request->transfer, &request->moved);
    request->outer = completed_here;
    completed_here = request;
    request->code = starfish_shim_fail(request->file, class);
    completed_here = request->outer;
    PMPI_Grequest_complete(request->handle);
    /* After this decrement the file may be closed. If an error handler has already closed it, `request->file` is NULL.
       */
    if (request->file) {
        atomic_fetch_sub(&request->file->requests, 1);
    }
    let_go(request);
}

/* Completes all selected requests whose calls have ended. Returns their number. */
static int complete_ended(struct meant meant)
{
    int completed = 0;
    meant.has_ended = 1;
    for (struct request *request; (request = take(meant)); completed++) {
        complete(request);
    }
    return completed;
}

/* Functions that the MPI library calls. If no call has ended, they yield the processor to other threads, which may be
   doing the work that the program waits for. */

static int query(void *asked, MPI_Status *status)
{
    const struct request *request = asked;
    starfish_shim_set_status(status, request->moved);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return request->code;
}

/* Calls cannot be cancelled: a call in flight continues. */
static int cancel(void *request, int is_complete)
{
    (void)request;
    (void)is_complete;
    return MPI_SUCCESS;
}

/* A generalized request in MPICH that never completes. Testing it only makes MPICH progress with its messages. */
static MPI_Request endless;

/* MPICH calls this. While the program waits for one of our requests, MPICH makes no progress with messages, although
   other processes may wait for them. So this function makes MPICH progress. */
static int poll(void *request, MPI_Status *status)
{
    (void)status;
    if (!complete_ended((struct meant){.request = request})) {
        int is_complete;
        PMPI_Test(&endless, &is_complete, MPI_STATUS_IGNORE);
        sched_yield();
    }
    return MPI_SUCCESS;
}

static int poll_each(int count, void **requests, double patience, MPI_Status *status)
{
    (void)patience;
    for (int i = 0; i < count; i++) {
        poll(requests[i], status);
    }
    return MPI_SUCCESS;
}

/* Open MPI calls this to make progress (opal_progress_register). */
static int progress(void)
{
    if (!atomic_load(&under_way)) {
        return 0;
    }
    int completed = complete_ended((struct meant){0});
    if (!completed) {
        sched_yield();
    }
    return completed;
}

/* Makes the MPI library ask whether a call has ended. */

typedef int start_polled(MPI_Grequest_query_function *, MPI_Grequest_free_function *, MPI_Grequest_cancel_function *,
                         int (*)(void *, MPI_Status *), int (*)(int, void **, double, MPI_Status *), void *,
                         MPI_Request *);
typedef int register_progress(int (*)(void));

static start_polled *of_mpich;
static int asks;

static void find_out(void)
{
    of_mpich = (start_polled *)dlsym(RTLD_DEFAULT, "MPIX_Grequest_start");
    if (of_mpich && PMPI_Grequest_start(query, let_go, cancel, NULL, &endless) != MPI_SUCCESS) {
        of_mpich = NULL;
    }
    register_progress *of_open_mpi = (register_progress *)dlsym(RTLD_DEFAULT, "opal_progress_register");
    asks = of_mpich || (of_open_mpi && of_open_mpi(progress) == 0);
}

static int start(struct request *request)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_out);
    return of_mpich ? of_mpich(query, let_go, cancel, poll, poll_each, request, &request->handle)
                    : PMPI_Grequest_start(query, let_go, cancel, request, &request->handle);
}

int starfish_shim_request(struct our_file *file, const struct transfer *transfer, MPI_Request *into)
{
    /* MPICH does not ask about requests that the program has freed. So complete the ended ones at the head of the list.
       */
    complete_ended((struct meant){.file = file, .is_first = 1});
    struct request *request = calloc(1, sizeof *request);
    int code = request ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    if (request) {
        *request = (struct request){.transfer = *transfer, .file = file, .holders = 2};
        code = start(request);
    }
    if (code != MPI_SUCCESS) {
        struct transfer unrequested = *transfer;
        size_t moved;
        starfish_shim_end(&unrequested, &moved);
        free(request);
        return code;
    }
    *into = request->handle;
    atomic_fetch_add(&file->requests, 1);
    if (asks) {
        enter(request);
    } else {
        complete(request);
    }
    return MPI_SUCCESS;
}

void starfish_shim_settle(struct our_file *file)
{
    for (struct request *request; (request = take((struct meant){.file = file}));) {
        complete(request);
    }
    /* Error handlers may call this function. Requests being completed on this thread no longer use the file: do not
       wait for them. */
    for (struct request *request = completed_here; request; request = request->outer) {
        if (request->file == file) {
            request->file = NULL;
            atomic_fetch_sub(&file->requests, 1);
        }
    }
    /* Another thread may be completing a request of the file. */
    while (atomic_load(&file->requests)) {
        sched_yield();
    }
}
