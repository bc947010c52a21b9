/* pdiol.h - files striped over the disks of many machines, with functions like those of stdio.
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
 * Every function that fails sets errno, and pdiol_strerror() returns a message: the file, the agent, and the remedy.
 * Several threads may use the same PFS_FILE; each call is atomic, as in stdio. pdiol(7) is an overview.
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

/* An open file. Only the functions of this header may use the fields. */
typedef struct PFS_FILE {
    const unsigned char *pdiol_next; /* the next buffered byte to read, */
    const unsigned char *pdiol_end;  /* and the end of these bytes */
    unsigned char *pdiol_room;       /* the next free byte of the write buffer, */
    unsigned char *pdiol_room_end;   /* and the end of that buffer */
    uintptr_t pdiol_owner;           /* the thread that needs no lock, if any */
    int pdiol_busy;                  /* not 0 while that thread uses the file */
} PFS_FILE;

/* Result of pdiol_stat and pdiol_fstat. */
typedef struct pdiol_state_struct {
    int64_t size;        /* bytes of the file */
    int64_t block_size;  /* bytes of a block, the striping unit; also the page size of the cache */
    int32_t disk_number; /* number of disks of the file */
    uint32_t mode;       /* permissions, such as 0644 */
    uint32_t uid, gid;   /* owner and group */
    int64_t accessed;    /* time of access, in nanoseconds since 1970; a read does not change it */
    int64_t modified;    /* time of the last change of contents */
    int64_t changed;     /* time of the last change of contents or attributes */
} pdiol_state_struct;

/* Access patterns for pdiol_hint. */
#define AP_NORMAL 0     /* no particular pattern */
#define AP_SEQUENTIAL 1 /* from the beginning to the end */
#define AP_RANDOM 2     /* in random order: nothing is prefetched */

/* Further hints for pdiol_hint: 0, or a bitwise OR of these. */
#define FINAL_WRITE 1    /* this program does not use the file after closing it */
#define TEMPORARY_FILE 2 /* this program removes the file: keep it in memory as long as there is space */

/* Start and end. The options of PDIOL precede an argument "-" in argv; the options and this argument are removed. */
int initialize_pdiol(int *pargc, char ***pargv);
int finalize_pdiol(void);

/* Files by name. */
PFS_FILE *pdiol_fopen(const char *const path, const char *const mode);
int pdiol_stat(const char *const path, pdiol_state_struct *pstat);
int pdiol_unlink(const char *const path);

/* Open files. */
int pdiol_fclose(PFS_FILE *pf); /* waits for agents, but, unlike pdiol_fflush, not for disks */
int pdiol_fflush(PFS_FILE *pf); /* NULL: all open files */
int pdiol_fstat(PFS_FILE *pf, pdiol_state_struct *pstat);
int pdiol_ftruncate(PFS_FILE *pf, int64_t size);
int pdiol_hint(PFS_FILE *pf, int access_pattern, int hint);
int pdiol_fadvise(PFS_FILE *pf, int64_t offset, int64_t length, int advice); /* POSIX_FADV_WILLNEED, ... */

/* Reading and writing. pdiol_fread and pdiol_fwrite return the number of whole items, or -1 after an error without any.
   */
ssize_t pdiol_fread(void *ptr, size_t size, size_t nmemb, PFS_FILE *pf);
ssize_t pdiol_fwrite(const void *ptr, size_t size, size_t nmemb, PFS_FILE *pf);
char *pdiol_fgets(char *s, int size, PFS_FILE *pf);
int pdiol_fputs(const char *s, PFS_FILE *pf);
int pdiol_getc(PFS_FILE *pf);
int pdiol_putc(int c, PFS_FILE *pf);

/* The position. pdiol_fseeko and pdiol_ftello use 64-bit offsets on every machine. */
int pdiol_fseek(PFS_FILE *pf, long offset, int whence);
int pdiol_fseeko(PFS_FILE *pf, int64_t offset, int whence);
long pdiol_ftell(const PFS_FILE *const pf);
int64_t pdiol_ftello(const PFS_FILE *const pf);
void pdiol_rewind(PFS_FILE *pf);

/* End of file and errors. */
int pdiol_feof(const PFS_FILE *const pf);
int pdiol_ferror(const PFS_FILE *const pf);
void pdiol_clearerr(PFS_FILE *pf);

/* The message of the last error of this thread, valid until the next error of this thread. Never NULL. */
const char *pdiol_strerror(void);

/* Locks a file for several calls of one thread. Only the thread with the lock may call the functions ending in
   _unlocked. */
void pdiol_flockfile(PFS_FILE *pf);
int pdiol_ftrylockfile(PFS_FILE *pf); /* 0: this thread now holds the lock */
void pdiol_funlockfile(PFS_FILE *pf);
int pdiol_getc_unlocked(PFS_FILE *pf);
int pdiol_putc_unlocked(int c, PFS_FILE *pf);

/* Reading and writing single bytes without a call. The rest of this header is not part of the interface.
 *
 * The first thread that uses a file owns it. The owner needs no atomic read-modify-write: it marks the file busy, and
 * then checks that it is still the owner. Another thread first ends the ownership permanently, then makes all threads
 * pass a memory barrier, with membarrier(2), and then waits until the owner is not busy. From then on all threads take
 * a lock in the library. */
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

/* Returns 1 if this thread may use the file without a lock; then the caller must pass *busy to pdiol_leave_. Returns 0
   for NULL, too, so that the library reports the error. */
static inline int pdiol_enter_(PFS_FILE *pf, int *busy)
{
    uintptr_t thread = pdiol_this_thread_();
    if (__builtin_expect(pf == NULL, 0) || __atomic_load_n(&pf->pdiol_owner, __ATOMIC_RELAXED) != thread)
        return 0;
    *busy = __atomic_load_n(&pf->pdiol_busy, __ATOMIC_RELAXED);
    __atomic_store_n(&pf->pdiol_busy, *busy + 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* membarrier is the other half of this barrier */
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
