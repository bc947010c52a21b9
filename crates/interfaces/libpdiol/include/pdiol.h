/* pdiol.h - files in stripes over the disks of many machines, used like those of stdio.
 *
 *     PFS_FILE *file;
 *     if (initialize_pdiol(&argc, &argv) != 0 || (file = pdiol_fopen("notes.txt", "r")) == NULL) {
 *         fprintf(stderr, "%s\n", pdiol_strerror());
 *         return 1;
 *     }
 *     for (int byte; (byte = pdiol_getc(file)) != EOF;)
 *         putchar(byte);
 *     pdiol_fclose(file);
 *     return finalize_pdiol();
 *
 * Compile and link, as C99 or later, with: cc program.c $(pkg-config --cflags --libs pdiol)
 *
 * Every function that fails sets errno, and pdiol_strerror() tells more: the file, the agent, and what to do about it.
 * A PFS_FILE may be used by several threads; each call is atomic, as in stdio. pdiol(7) is an overview.
 */
#ifndef PDIOL_H
#define PDIOL_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h> /* EOF, SEEK_SET, SEEK_CUR, SEEK_END */
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An open file. Its fields are for the functions of this header alone. */
typedef struct PFS_FILE {
    const unsigned char *pdiol_next; /* bytes that have been read already: the next one, */
    const unsigned char *pdiol_end;  /* and where they end */
    unsigned char *pdiol_room;       /* room for bytes to write, */
    unsigned char *pdiol_room_end;   /* and where it ends */
    uintptr_t pdiol_owner;           /* the thread that needs no lock, if there is one */
    int pdiol_busy;                  /* whether that thread is at work here */
} PFS_FILE;

/* What pdiol_stat and pdiol_fstat find out. */
typedef struct pdiol_state_struct {
    int64_t size;        /* bytes of the file */
    int64_t block_size;  /* bytes on one disk before the file goes on on the next; one page of the cache */
    int32_t disk_number; /* disks over which it is striped */
    uint32_t mode;       /* permissions, such as 0644 */
    uint32_t uid, gid;   /* owner and group */
    int64_t accessed;    /* time of access, in nanoseconds since 1970; a read does not change it */
    int64_t modified;    /* time of the last change of contents */
    int64_t changed;     /* time of the last change of contents or attributes */
} pdiol_state_struct;

/* Access patterns for pdiol_hint. */
#define AP_NORMAL 0     /* nothing in particular */
#define AP_SEQUENTIAL 1 /* from the beginning to the end */
#define AP_RANDOM 2     /* here and there: nothing is prefetched */

/* What else pdiol_hint may say; 0, or some of these added up. */
#define FINAL_WRITE 1    /* this program does not use the file after closing it */
#define TEMPORARY_FILE 2 /* this program removes the file: keep it from the disks as long as there is memory */

/* Beginning and end. The options of PDIOL stand in argv before an argument "-"; they are removed with it. */
int initialize_pdiol(int *pargc, char ***pargv);
int finalize_pdiol(void);

/* Files by name. */
PFS_FILE *pdiol_fopen(const char *const path, const char *const mode);
int pdiol_stat(const char *const path, pdiol_state_struct *pstat);
int pdiol_unlink(const char *const path);

/* Open files. */
int pdiol_fclose(PFS_FILE *pf); /* waits for agents, not for disks; pdiol_fflush does */
int pdiol_fflush(PFS_FILE *pf); /* of NULL: all */
int pdiol_fstat(PFS_FILE *pf, pdiol_state_struct *pstat);
int pdiol_ftruncate(PFS_FILE *pf, int64_t size);
int pdiol_hint(PFS_FILE *pf, int access_pattern, int hint);
int pdiol_fadvise(PFS_FILE *pf, int64_t offset, int64_t length, int advice); /* POSIX_FADV_WILLNEED, ... */

/* Reading and writing. The number of items; -1 if there is an error before the first is complete. */
ssize_t pdiol_fread(void *ptr, size_t size, size_t nmemb, PFS_FILE *pf);
ssize_t pdiol_fwrite(const void *ptr, size_t size, size_t nmemb, PFS_FILE *pf);
char *pdiol_fgets(char *s, int size, PFS_FILE *pf);
int pdiol_fputs(const char *s, PFS_FILE *pf);
int pdiol_getc(PFS_FILE *pf);
int pdiol_putc(int c, PFS_FILE *pf);

/* The position. pdiol_fseeko and pdiol_ftello take and give 64 bits on every machine. */
int pdiol_fseek(PFS_FILE *pf, long offset, int whence);
int pdiol_fseeko(PFS_FILE *pf, int64_t offset, int whence);
long pdiol_ftell(const PFS_FILE *const pf);
int64_t pdiol_ftello(const PFS_FILE *const pf);
void pdiol_rewind(PFS_FILE *pf);

/* What happened. */
int pdiol_feof(const PFS_FILE *const pf);
int pdiol_ferror(const PFS_FILE *const pf);
void pdiol_clearerr(PFS_FILE *pf);

/* The last error of this thread, in words, until its next one. Never NULL. */
const char *pdiol_strerror(void);

/* A file for one thread over several calls. The calls ending in _unlocked are for its owner. */
void pdiol_flockfile(PFS_FILE *pf);
int pdiol_ftrylockfile(PFS_FILE *pf); /* 0: this thread has it */
void pdiol_funlockfile(PFS_FILE *pf);
int pdiol_getc_unlocked(PFS_FILE *pf);
int pdiol_putc_unlocked(int c, PFS_FILE *pf);

/* Reading and writing single bytes without a call: what follows is how, and not part of the interface.
 *
 * The first thread that uses a file owns it. The owner needs no atomic read-modify-write: it says that it is busy, and
 * looks whether it is the owner still. Another thread first ends the ownership for good, then makes all threads pass a
 * memory barrier, with membarrier(2), and then waits until the owner is not busy. From then on all take a lock, in
 * the library. */
#if defined(__GNUC__) && defined(__LP64__) && defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))

static inline uintptr_t pdiol_this_thread_(void)
{
    uintptr_t thread;
#ifdef __x86_64__
    __asm__("mov %%fs:0, %0" : "=r"(thread));
#else
    __asm__("mrs %0, tpidr_el0" : "=r"(thread));
#endif
    return thread;
}

/* Whether this thread may go on without a lock; what *busy was before is to be given to pdiol_leave_. Of NULL the library
 * says what is wrong. */
static inline int pdiol_enter_(PFS_FILE *pf, int *busy)
{
    uintptr_t thread = pdiol_this_thread_();
    if (__builtin_expect(pf == NULL, 0) || __atomic_load_n(&pf->pdiol_owner, __ATOMIC_RELAXED) != thread)
        return 0;
    *busy = __atomic_load_n(&pf->pdiol_busy, __ATOMIC_RELAXED);
    __atomic_store_n(&pf->pdiol_busy, *busy + 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* the other half is membarrier */
    if (__builtin_expect(__atomic_load_n(&pf->pdiol_owner, __ATOMIC_RELAXED) == thread, 1))
        return 1;
    __atomic_store_n(&pf->pdiol_busy, *busy, __ATOMIC_RELEASE);
    return 0;
}

static inline void pdiol_leave_(PFS_FILE *pf, int busy)
{
    __atomic_store_n(&pf->pdiol_busy, busy, __ATOMIC_RELEASE);
}

static inline int pdiol_getc_inline_(PFS_FILE *pf)
{
    int busy;
    if (__builtin_expect(pdiol_enter_(pf, &busy), 1)) {
        if (__builtin_expect(pf->pdiol_next != pf->pdiol_end, 1)) {
            int c = *pf->pdiol_next++;
            pdiol_leave_(pf, busy);
            return c;
        }
        pdiol_leave_(pf, busy);
    }
    return pdiol_getc(pf);
}

static inline int pdiol_putc_inline_(int c, PFS_FILE *pf)
{
    int busy;
    if (__builtin_expect(pdiol_enter_(pf, &busy), 1)) {
        if (__builtin_expect(pf->pdiol_room != pf->pdiol_room_end, 1)) {
            *pf->pdiol_room++ = (unsigned char)c;
            pdiol_leave_(pf, busy);
            return (unsigned char)c;
        }
        pdiol_leave_(pf, busy);
    }
    return pdiol_putc(c, pf);
}

#define pdiol_getc(pf) pdiol_getc_inline_(pf)
#define pdiol_putc(c, pf) pdiol_putc_inline_(c, pf)

#endif

static inline int pdiol_getc_unlocked_inline_(PFS_FILE *pf)
{
    return pf != NULL && pf->pdiol_next != pf->pdiol_end ? *pf->pdiol_next++ : pdiol_getc_unlocked(pf);
}

static inline int pdiol_putc_unlocked_inline_(int c, PFS_FILE *pf)
{
    if (pf == NULL || pf->pdiol_room == pf->pdiol_room_end)
        return pdiol_putc_unlocked(c, pf);
    return *pf->pdiol_room++ = (unsigned char)c;
}

#define pdiol_getc_unlocked(pf) pdiol_getc_unlocked_inline_(pf)
#define pdiol_putc_unlocked(c, pf) pdiol_putc_unlocked_inline_(c, pf)

#ifdef __cplusplus
}
#endif

#endif
