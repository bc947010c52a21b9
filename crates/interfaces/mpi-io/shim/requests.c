/*
 * Requests: calls under way, as generalized requests of the MPI.
 *
 * The MPI itself has nobody who would complete one, so it has to ask us whether a call has ended. MPICH asks for each
 * request that somebody tests or waits for, if it is made by a function of its own. Open MPI calls whoever has
 * registered for that when it looks whether anything goes on; it is told with the first request. Both are looked for
 * when the program runs, so that one shim is for all releases. Where there is neither, a call has ended when its request
 * is there.
 *
 * Whoever finds that a call has ended takes it out of the list, fills the memory, and completes the request.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "shim.h"

/* A request, from when it is made until the MPI has freed it and it is complete. */
struct request {
    struct transfer transfer;
    struct our_file *file;
    MPI_Request handle;
    int code;
    size_t moved;
    /* The MPI, and whoever completes it. */
    atomic_int holders;
    struct request *next;
    /* The one that this thread was completing when it came to this one: it is in an error handler. */
    struct request *outer;
};

/* Those that nobody completes yet, in the order in which they were made. */
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

/* Which of the list are meant: of all or of one file, all or one of them, ended or not. */
struct meant {
    const struct our_file *file;
    const struct request *request;
    int has_ended;
    /* Whether one that is not meant ends the search. */
    int is_first;
};

static int is_meant(const struct request *request, struct meant meant)
{
    return (!meant.file || request->file == meant.file) && (!meant.request || request == meant.request) &&
           (!meant.has_ended || starfish_mpi_is_done(request->transfer.call));
}

/* Takes the first that is meant out of the list, for whoever completes it then; NULL if there is none. */
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

/* Completes one that has been taken; waits for it, if it has not ended. */
static void complete(struct request *request)
{
    int class = starfish_shim_end(&request->transfer, &request->moved);
    request->outer = completed_here;
    completed_here = request;
    request->code = starfish_shim_fail(request->file, class);
    completed_here = request->outer;
    PMPI_Grequest_complete(request->handle);
    /* From here on it may be closed, and is, if an error handler has done so. */
    if (request->file) {
        atomic_fetch_sub(&request->file->requests, 1);
    }
    let_go(request);
}

/* Completes those that are meant and have ended; how many. */
static int complete_ended(struct meant meant)
{
    int completed = 0;
    meant.has_ended = 1;
    for (struct request *request; (request = take(meant)); completed++) {
        complete(request);
    }
    return completed;
}

/* What the MPI calls. If nothing has ended, the processor is left to whoever has something to do: that may be what is
   waited for. */

static int query(void *asked, MPI_Status *status)
{
    const struct request *request = asked;
    starfish_shim_set_status(status, request->moved);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return request->code;
}

/* What is under way goes on. */
static int cancel(void *request, int is_complete)
{
    (void)request;
    (void)is_complete;
    return MPI_SUCCESS;
}

/* A request of MPICH that is never complete: testing it makes messages go on, and nothing else. */
static MPI_Request endless;

/* Of MPICH, which does nothing else while somebody waits for a request of ours, though messages of the program may be on
   their way, for which others wait. */
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

/* Of Open MPI. */
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

/* How the MPI is had to ask. */

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
    /* MPICH does not ask for those that the program has freed. */
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
    /* Those whose error handlers call this have nothing left to do with the file. */
    for (struct request *request = completed_here; request; request = request->outer) {
        if (request->file == file) {
            request->file = NULL;
            atomic_fetch_sub(&file->requests, 1);
        }
    }
    /* Another thread may be completing one. */
    while (atomic_load(&file->requests)) {
        sched_yield();
    }
}
