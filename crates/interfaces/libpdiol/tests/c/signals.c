/* signals.c - the threads of the library take no signals from the program. */
#include "check.h"

#include <signal.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    sigset_t mask, awaited;
    int arrived;

    CHECK(initialize_pdiol(&argc, &argv) == 0);
    PFS_FILE *file = pdiol_fopen("signals", "w");
    CHECK(file != NULL && pdiol_fputs("by all threads there may be", file) >= 0 && pdiol_fclose(file) == 0);

    /* The library has not changed the signal mask of this thread. */
    CHECK(pthread_sigmask(SIG_SETMASK, NULL, &mask) == 0 && sigismember(&mask, SIGTERM) == 0);

    /* If another thread has not blocked the signal, it is delivered there and ends the process. */
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGTERM);
    CHECK(pthread_sigmask(SIG_BLOCK, &awaited, NULL) == 0);
    CHECK(kill(getpid(), SIGTERM) == 0);
    CHECK(sigwait(&awaited, &arrived) == 0 && arrived == SIGTERM);
    return finalize_pdiol() != 0;
}
