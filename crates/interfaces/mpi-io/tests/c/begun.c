/* Nonblocking calls: they continue while the program does other work, and complete as MPI requests do. */
#include <unistd.h>

#include "check.h"

enum { COUNT = 3000 };

static MPI_File opened(const char *name)
{
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    return file;
}

static void fill(int *numbers, int count, int from)
{
    for (int i = 0; i < count; i++) {
        numbers[i] = from + i;
    }
}

static void check_numbers(const int *numbers, int count, int from)
{
    for (int i = 0; i < count; i++) {
        CHECK(numbers[i] == from + i);
    }
}

/* Statuses that no test reads: with MPI_STATUSES_IGNORE the compiler warns in the headers of MPICH. */
static MPI_Status ignored[2];

static int count_of(MPI_Status *status)
{
    int count;
    MPI_Get_count(status, MPI_INT, &count);
    return count;
}

/* Each process begins its call after the process of the previous rank has begun its own. */
static void chain(MPI_File file)
{
    int numbers[COUNT], back[COUNT], token = 7;
    MPI_Request request;
    MPI_Status status;
    fill(numbers, COUNT, rank * COUNT);
    for (int round = 0; round < 20; round++) {
        if (rank > 0) {
            MPI_Recv(&token, 1, MPI_INT, rank - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        OK(MPI_File_iwrite_at_all(file, rank * COUNT, numbers, COUNT, MPI_INT, &request));
        if (rank < size - 1) {
            MPI_Send(&token, 1, MPI_INT, rank + 1, 1, MPI_COMM_WORLD);
        }
        /* The last process completes its call although the others are not waiting for theirs yet. */
        if (rank == size - 1) {
            OK(MPI_Wait(&request, &status));
        }
        MPI_Bcast(&token, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
        if (rank < size - 1) {
            OK(MPI_Wait(&request, &status));
        }
        CHECK(request == MPI_REQUEST_NULL && count_of(&status) == COUNT);
        int cancelled;
        MPI_Test_cancelled(&status, &cancelled);
        CHECK(!cancelled);
    }
    OK(MPI_File_iread_at_all(file, rank * COUNT, back, COUNT, MPI_INT, &request));
    for (int is_done = 0; !is_done;) {
        OK(MPI_Test(&request, &is_done, &status));
    }
    CHECK(count_of(&status) == COUNT);
    check_numbers(back, COUNT, rank * COUNT);
}

/* While a process waits for a file request, its messages make progress, since another process waits for them. */
static void messages(MPI_File file)
{
    enum { LARGE = 1 << 20 };
    char *message = calloc(LARGE, 1);
    int number = rank, next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Request sent, written;
    for (int round = 0; round < 5; round++) {
        if (rank == 0) {
            MPI_Isend(message, LARGE, MPI_CHAR, next, 2, MPI_COMM_WORLD, &sent);
        } else {
            MPI_Recv(message, LARGE, MPI_CHAR, before, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Isend(message, LARGE, MPI_CHAR, next, 2, MPI_COMM_WORLD, &sent);
        }
        if (rank == 0 && round % 2) {
            MPI_Request both[] = {MPI_REQUEST_NULL, sent};
            OK(MPI_File_iwrite_at_all(file, rank, &number, 1, MPI_INT, &both[0]));
            MPI_Recv(message, LARGE, MPI_CHAR, before, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            OK(MPI_Waitall(2, both, ignored));
        } else {
            OK(MPI_File_iwrite_at_all(file, rank, &number, 1, MPI_INT, &written));
            OK(MPI_Wait(&written, MPI_STATUS_IGNORE));
            if (rank == 0) {
                MPI_Recv(message, LARGE, MPI_CHAR, before, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            }
            OK(MPI_Wait(&sent, MPI_STATUS_IGNORE));
        }
    }
    free(message);
}

/* Blocking calls of all processes. */

static void write_all(MPI_File file)
{
    OK(MPI_File_write_at_all(file, rank, &rank, 1, MPI_INT, ignored));
}

static void read_all(MPI_File file)
{
    int back;
    OK(MPI_File_read_at_all(file, rank, &back, 1, MPI_INT, ignored));
}

static void write_ordered(MPI_File file)
{
    OK(MPI_File_write_ordered(file, &rank, 1, MPI_INT, ignored));
}

static void seek_shared(MPI_File file)
{
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
}

static void sync_all(MPI_File file)
{
    OK(MPI_File_sync(file));
}

static void set_size(MPI_File file)
{
    OK(MPI_File_set_size(file, 1 << 20));
}

static void set_info(MPI_File file)
{
    OK(MPI_File_set_info(file, MPI_INFO_NULL));
}

static void split(MPI_File file)
{
    OK(MPI_File_write_at_all_begin(file, rank, &rank, 1, MPI_INT));
    OK(MPI_File_write_at_all_end(file, &rank, ignored));
}

/* A sync, which waits for the request before it. */
static void settle(MPI_File file)
{
    MPI_Request request;
    OK(MPI_File_iwrite_at_all(file, rank, &rank, 1, MPI_INT, &request));
    OK(MPI_File_sync(file));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

static void open_and_close(MPI_File file)
{
    (void)file;
    MPI_File other = opened("starfish:mpi/begun-other");
    OK(MPI_File_close(&other));
}

/* While a process waits in a blocking call, its messages make progress: the next process enters the call only after it
   has received a message. */
static void messages_beside(void (*call)(MPI_File), MPI_File file)
{
    enum { LARGE = 1 << 20 };
    char *message = calloc(LARGE, 1);
    MPI_Request sent = MPI_REQUEST_NULL;
    if (rank > 0) {
        MPI_Recv(message, LARGE, MPI_CHAR, rank - 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (rank < size - 1) {
        MPI_Isend(message, LARGE, MPI_CHAR, rank + 1, 3, MPI_COMM_WORLD, &sent);
    }
    call(file);
    OK(MPI_Wait(&sent, MPI_STATUS_IGNORE));
    free(message);
}

static void blocking(MPI_File file)
{
    static void (*const calls[])(MPI_File) = {write_all, read_all, write_ordered, seek_shared, sync_all,
                                              set_size,  set_info, split,         settle,      open_and_close};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        messages_beside(calls[i], file);
    }
}

/* Calls take effect in the order in which they began, and each advances the pointer. */
static void many(MPI_File file)
{
    enum { CALLS = 50, EACH = 20 };
    int numbers[CALLS][EACH], back[CALLS][EACH], token = 0;
    MPI_Request requests[CALLS];
    MPI_Status statuses[CALLS];
    MPI_Offset position;
    memset(back, 0, sizeof back);
    OK(MPI_File_seek(file, rank * CALLS * EACH, MPI_SEEK_SET));
    for (int i = 0; i < CALLS; i++) {
        fill(numbers[i], EACH, (rank * CALLS + i) * EACH);
        OK((i % 2 ? MPI_File_iwrite : MPI_File_iwrite_all)(file, numbers[i], EACH, MPI_INT, &requests[i]));
    }
    OK(MPI_File_get_position(file, &position));
    CHECK(position == (rank + 1) * CALLS * EACH);
    OK(MPI_Waitall(CALLS, requests, statuses));
    for (int i = 0; i < CALLS; i++) {
        CHECK(requests[i] == MPI_REQUEST_NULL && count_of(&statuses[i]) == EACH);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    int other = (rank + 1) % size;
    OK(MPI_File_seek(file, other * CALLS * EACH, MPI_SEEK_SET));
    for (int i = 0; i < CALLS; i++) {
        OK((i % 2 ? MPI_File_iread : MPI_File_iread_all)(file, back[i], EACH, MPI_INT, &requests[i]));
    }
    /* Complete the calls in any order. */
    for (int done = 0; done < CALLS;) {
        int which, some[CALLS], is_done = 0, found = 0;
        switch (done % 4) {
        case 0:
            OK(MPI_Waitany(CALLS, requests, &which, statuses));
            CHECK(which != MPI_UNDEFINED && count_of(statuses) == EACH);
            done++;
            break;
        case 1:
            OK(MPI_Testany(CALLS, requests, &which, &is_done, statuses));
            done += is_done;
            token += !is_done;
            break;
        case 2:
            OK(MPI_Waitsome(CALLS, requests, &found, some, statuses));
            CHECK(found > 0);
            done += found;
            break;
        default:
            OK(MPI_Testsome(CALLS, requests, &found, some, statuses));
            done += found == MPI_UNDEFINED ? 0 : found;
        }
    }
    check_numbers(back[0], CALLS * EACH, other * CALLS * EACH);
    OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
}

/* Requests that are freed, cancelled and queried. */
static void strange_ends(MPI_File file)
{
    int number = 1000 + rank, back = 0, is_done = 0, numbers[COUNT];
    MPI_Request request, requests[2];
    MPI_Status status;
    OK(MPI_File_iwrite_at(file, rank, &number, 1, MPI_INT, &request));
    OK(MPI_Request_free(&request));
    CHECK(request == MPI_REQUEST_NULL);
    /* The sync waits for the freed request. */
    OK(MPI_File_sync(file));
    OK(MPI_File_iread_at(file, rank, &back, 1, MPI_INT, &request));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    MPI_Test_cancelled(&status, &is_done);
    CHECK(!is_done && back == number);
    back = 0;
    OK(MPI_File_iread_at(file, rank, &back, 1, MPI_INT, &request));
    for (is_done = 0; !is_done;) {
        OK(MPI_Request_get_status(request, &is_done, &status));
        if (!is_done) {
            /* MPI_Request_get_status need not make progress. */
            int is_there;
            MPI_Test(&request, &is_there, &status);
            is_done = is_there;
        }
    }
    CHECK(back == number && count_of(&status) == 1);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int i = 0; i < 300; i++) {
        OK(MPI_File_iwrite_at(file, 100 + rank * 300 + i, &number, 1, MPI_INT, &request));
        OK(MPI_Request_free(&request));
    }
    OK(MPI_File_sync(file));
    OK(MPI_File_iread_at(file, 100 + rank * 300, numbers, 300, MPI_INT, &requests[0]));
    OK(MPI_File_iread_at(file, rank, &back, 1, MPI_INT, &requests[1]));
    for (is_done = 0; !is_done;) {
        OK(MPI_Testall(2, requests, &is_done, ignored));
    }
    for (int i = 0; i < 300; i++) {
        CHECK(numbers[i] == number);
    }
}

/* Memory with gaps, of a type that is freed before the call has ended; then a read beyond the end of the file. */
static void memory(MPI_File file)
{
    MPI_Datatype every;
    MPI_Request request;
    MPI_Status status;
    int numbers[2 * COUNT], back[2 * COUNT];
    fill(numbers, 2 * COUNT, 0);
    memset(back, 0, sizeof back);
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &every);
    MPI_Type_commit(&every);
    OK(MPI_File_iwrite_at_all(file, rank * COUNT, numbers, COUNT, every, &request));
    MPI_Type_free(&every);
    OK(MPI_Wait(&request, &status));
    CHECK(count_of(&status) == COUNT);
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &every);
    MPI_Type_commit(&every);
    OK(MPI_File_iread_at(file, rank * COUNT, back, COUNT, every, &request));
    MPI_Type_free(&every);
    OK(MPI_Wait(&request, &status));
    for (int i = 0; i < COUNT; i++) {
        CHECK(back[2 * i] == 2 * i && back[2 * i + 1] == 0);
    }
    OK(MPI_File_set_size(file, size * COUNT * (MPI_Offset)sizeof(int)));
    OK(MPI_File_iread_at(file, size * COUNT - 5, back, 10, MPI_INT, &request));
    OK(MPI_Wait(&request, &status));
    CHECK(count_of(&status) == 5);
}

/* Calls by the shared pointer, in atomic mode, and split calls. */
static void other_ways(MPI_File file)
{
    int numbers[10], back[10], seen = 0;
    MPI_Request requests[2];
    MPI_Status status;
    fill(numbers, 10, 10 * rank);
    OK(MPI_File_set_size(file, 0));
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    OK(MPI_File_iwrite_shared(file, numbers, 5, MPI_INT, &requests[0]));
    OK(MPI_File_iwrite_shared(file, numbers + 5, 5, MPI_INT, &requests[1]));
    OK(MPI_Waitall(2, requests, ignored));
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    OK(MPI_File_iread_shared(file, back, 5, MPI_INT, &requests[0]));
    OK(MPI_File_iread_shared(file, back + 5, 5, MPI_INT, &requests[1]));
    OK(MPI_Waitall(2, requests, ignored));
    for (int i = 0; i < 10; i++) {
        seen += back[i];
    }
    MPI_Allreduce(MPI_IN_PLACE, &seen, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(seen == 10 * size * (10 * size - 1) / 2);
    OK(MPI_File_set_atomicity(file, 1));
    OK(MPI_File_iwrite_at_all(file, 10 * rank, numbers, 10, MPI_INT, &requests[0]));
    OK(MPI_File_iwrite_at(file, 10 * (size + rank), numbers, 10, MPI_INT, &requests[1]));
    OK(MPI_Waitall(2, requests, ignored));
    OK(MPI_File_set_atomicity(file, 0));
    OK(MPI_File_read_at_all_begin(file, 10 * ((rank + 1) % size), back, 10, MPI_INT));
    OK(MPI_File_read_at_all_end(file, back, &status));
    CHECK(count_of(&status) == 10);
    check_numbers(back, 10, 10 * ((rank + 1) % size));
}

static int handled;

static void handle(MPI_File *file, int *code, ...)
{
    (void)file;
    handled += class_of(*code) == MPI_ERR_IO;
}

/* MPI_Wait returns the error of a request, and the error handler of the file is called. */
static void errors(void)
{
    MPI_File file = opened("starfish:mpi/begun-wrong");
    MPI_Errhandler handler;
    MPI_Request request, both[2];
    MPI_Status statuses[2];
    int number = rank;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_File_create_errhandler(handle, &handler);
    OK(MPI_File_set_errhandler(file, handler));
    /* An invalid call fails when it begins. */
    FAILS(MPI_File_iwrite_at(file, -1, &number, 1, MPI_INT, &request), MPI_ERR_ARG);
    CHECK(request == MPI_REQUEST_NULL);
    FAILS(MPI_File_iwrite_at_all(file, -1, &number, 1, MPI_INT, &request), MPI_ERR_ARG);
    OK(MPI_File_iwrite_at_all(file, rank, &number, 1, MPI_INT, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(handled == 0);
    if (rank) {
        OK(MPI_File_iread_at_all(file, rank, &number, 1, MPI_INT, &request));
    } else {
        OK(MPI_File_iwrite_at_all(file, rank, &number, 1, MPI_INT, &request));
    }
    FAILS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_IO);
    CHECK(handled == 1 && request == MPI_REQUEST_NULL);
    OK(MPI_File_iwrite_at_all(file, rank, &number, 1, MPI_INT, &both[0]));
    OK(MPI_File_iread_at(file, rank, &number, 1, MPI_INT, &both[1]));
    FAILS(MPI_Waitall(2, both, statuses), MPI_ERR_IN_STATUS);
    /* MPICH only reports that a generalized request has an error, not which. */
    CHECK(statuses[0].MPI_ERROR != MPI_SUCCESS);
    CHECK(handled == 2);
    MPI_Errhandler_free(&handler);
    FAILS(MPI_File_close(&file), MPI_ERR_IO);
}

static MPI_File closed;

static void close_it(MPI_File *file, int *code, ...)
{
    (void)file;
    (void)code;
    /* These calls fail, too, and call this handler. */
    if (handled++ == 0) {
        MPI_File_sync(closed);
        MPI_File_close(&closed);
    }
}

/* The error handler of a request may make calls that wait for all requests of the file. */
static void closed_by_handler(void)
{
    MPI_Errhandler handler;
    MPI_Request request;
    int number = rank;
    closed = opened("starfish:mpi/begun-closed");
    handled = 0;
    MPI_File_create_errhandler(close_it, &handler);
    OK(MPI_File_set_errhandler(closed, handler));
    if (rank) {
        OK(MPI_File_iread_at_all(closed, rank, &number, 1, MPI_INT, &request));
    } else {
        OK(MPI_File_iwrite_at_all(closed, rank, &number, 1, MPI_INT, &request));
    }
    FAILS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_IO);
    CHECK(handled > 0 && closed == MPI_FILE_NULL);
    MPI_Errhandler_free(&handler);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    alarm(40);
    MPI_File file = opened("starfish:mpi/begun");
    chain(file);
    messages(file);
    blocking(file);
    many(file);
    strange_ends(file);
    memory(file);
    other_ways(file);
    /* Closing waits for calls in flight. */
    MPI_Request last;
    int number = rank;
    OK(MPI_File_iwrite_at_all(file, rank, &number, 1, MPI_INT, &last));
    OK(MPI_File_close(&file));
    OK(MPI_Wait(&last, MPI_STATUS_IGNORE));
    errors();
    closed_by_handler();
    return end();
}
