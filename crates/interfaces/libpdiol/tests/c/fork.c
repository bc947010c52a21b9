/* fork.c - a child of a process with a session may call any function: no call hangs. */
#include "check.h"

#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

static PFS_FILE *file, *locked, *reading;

/* Forks a child that runs `work`, and returns its exit status. A signal ends a child that hangs. */
static int forked(void (*work)(void))
{
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(60);
        work();
        exit(127);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Tries to execute a missing program, like a shell with an unknown command. */
static void find_no_program(void)
{
    char *const arguments[] = {"nothing", NULL};
    execvp("/nonexistent/nothing", arguments);
}

#define CHECK_FORKED(condition)                                \
    do {                                                       \
        CHECK_FAILS(EBADF, condition);                         \
        CHECK(strstr(pdiol_strerror(), "forked") != NULL);     \
    } while (0)

static void use_files(void)
{
    char buffer[8];
    pdiol_state_struct state;
    CHECK_FORKED(pdiol_fread(buffer, 1, sizeof buffer, file) == -1);
    CHECK_FORKED(pdiol_fwrite("x", 1, 1, file) == -1);
    CHECK_FORKED(pdiol_fgets(buffer, sizeof buffer, file) == NULL);
    CHECK_FORKED(pdiol_fseek(file, 0, SEEK_SET) == -1);
    CHECK_FORKED(pdiol_fflush(file) == -1);
    CHECK_FORKED(pdiol_fflush(NULL) == -1);
    CHECK_FORKED(pdiol_fstat(file, &state) == -1);
    CHECK_FORKED(pdiol_stat("fork", &state) == -1);
    CHECK_FORKED(pdiol_fopen("fork", "r") == NULL);
    CHECK_FORKED(pdiol_unlink("fork") == -1);
    /* The inline functions find neither buffered bytes nor buffer space. */
    CHECK_FORKED(pdiol_getc(reading) == EOF);
    CHECK_FORKED(pdiol_getc_unlocked(reading) == EOF);
    CHECK_FORKED(pdiol_putc('x', file) == EOF);
    CHECK_FORKED(pdiol_putc_unlocked('x', file) == EOF);
    CHECK_FORKED((pdiol_getc)(locked) == EOF);
    CHECK_FORKED((pdiol_putc)('x', locked) == EOF);
    CHECK_FORKED(pdiol_ftrylockfile(locked) != 0);
    CHECK_FORKED(pdiol_ferror(file) != 0);
    CHECK_FORKED(pdiol_fclose(file) == -1);
    CHECK_FORKED(pdiol_fclose(locked) == -1);
    CHECK_FORKED(initialize_pdiol(NULL, NULL) == -1);
    CHECK_FORKED(finalize_pdiol() == -1);
    exit(0);
}

static void have_a_session(void)
{
    pdiol_state_struct state;
    CHECK(initialize_pdiol(NULL, NULL) == 0);
    CHECK(pdiol_stat("fork", &state) == 0 && state.size == 2);
    CHECK(finalize_pdiol() == 0);
    exit(0);
}

static sem_t is_locked, is_over;

static void *keep_locked(void *argument)
{
    pdiol_flockfile(locked);
    sem_post(&is_locked);
    sem_wait(&is_over);
    pdiol_funlockfile(locked);
    return argument;
}

int main(int argc, char **argv)
{
    pthread_t other;
    pdiol_state_struct state;

    CHECK(initialize_pdiol(&argc, &argv) == 0);
    CHECK(forked(find_no_program) == 127);

    file = pdiol_fopen("fork", "w+");
    CHECK(file != NULL && pdiol_putc('a', file) == 'a');
    reading = pdiol_fopen("reading", "w+");
    CHECK(reading != NULL && pdiol_fputs("text", reading) >= 0 && pdiol_fseek(reading, 0, SEEK_SET) == 0);
    CHECK(pdiol_getc(reading) == 't');
    locked = pdiol_fopen("locked", "w+");
    CHECK(locked != NULL && pdiol_fputs("text", locked) >= 0);
    CHECK(sem_init(&is_locked, 0, 0) == 0 && sem_init(&is_over, 0, 0) == 0);
    CHECK(pthread_create(&other, NULL, keep_locked, NULL) == 0 && sem_wait(&is_locked) == 0);
    CHECK(forked(find_no_program) == 127);
    CHECK(forked(use_files) == 0);
    CHECK(sem_post(&is_over) == 0 && pthread_join(other, NULL) == 0);

    /* The parent continues, and data that it had written before the fork are written once. */
    CHECK(pdiol_putc('b', file) == 'b' && pdiol_fclose(file) == 0 && pdiol_fclose(locked) == 0);
    CHECK(pdiol_getc(reading) == 'e' && pdiol_fclose(reading) == 0);
    CHECK(pdiol_stat("fork", &state) == 0 && state.size == 2);
    CHECK(finalize_pdiol() == 0);

    /* A process without a session may fork a child, and the child may start a session. */
    CHECK(forked(have_a_session) == 0);
    return 0;
}
