/* Finds our files by their handles in C and Fortran, and finds the functions of the next library. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "shim.h"

/* Lowest Fortran handle of our files. No MPI library uses numbers as high as this. */
enum { FORTRAN_FIRST = 0x53460000 };

/* The open files. The place of a closed file is NULL. */
static struct our_file **files;
static int places;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void *starfish_shim_next(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) {
        fprintf(stderr, "starfish: the MPI library lacks %s\n", name);
        abort();
    }
    return found;
}

/* Returns the place of a file, or -1. The caller must hold the lock. */
static int place_of(const struct our_file *file)
{
    for (int place = 0; place < places; place++) {
        if (files[place] && files[place] == file) {
            return place;
        }
    }
    return -1;
}

struct our_file *starfish_shim_find(MPI_File handle)
{
    struct our_file *found = NULL;
    pthread_mutex_lock(&lock);
    int place = place_of((struct our_file *)handle);
    if (place >= 0) {
        found = files[place];
    }
    /* The MPI library passes the surrogate to the error handler, so find the file by its surrogate, too. */
    for (place = 0; place < places && !found; place++) {
        if (files[place] && files[place]->has_surrogate && files[place]->surrogate == handle) {
            found = files[place];
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

int starfish_shim_enter(struct our_file *file)
{
    int place = 0;
    pthread_mutex_lock(&lock);
    while (place < places && files[place]) {
        place++;
    }
    if (place == places) {
        struct our_file **more = realloc(files, (size_t)(places + 1) * sizeof *files);
        if (!more) {
            pthread_mutex_unlock(&lock);
            return -1;
        }
        files = more;
        places++;
    }
    files[place] = file;
    pthread_mutex_unlock(&lock);
    return 0;
}

void starfish_shim_leave(struct our_file *file)
{
    pthread_mutex_lock(&lock);
    int place = place_of(file);
    if (place >= 0) {
        files[place] = NULL;
    }
    pthread_mutex_unlock(&lock);
}

/* Returns the Fortran handle of a file, or -1. */
static int number_of(MPI_File handle)
{
    pthread_mutex_lock(&lock);
    int place = place_of((struct our_file *)handle);
    pthread_mutex_unlock(&lock);
    return place >= 0 ? FORTRAN_FIRST + place : -1;
}

/* Returns the file with this Fortran handle, or NULL. */
static struct our_file *numbered(int number)
{
    struct our_file *found = NULL;
    pthread_mutex_lock(&lock);
    int place = number - FORTRAN_FIRST;
    if (number >= FORTRAN_FIRST && place < places) {
        found = files[place];
    }
    pthread_mutex_unlock(&lock);
    return found;
}

/* The standard ABI does not include Fortran handles. */
#ifndef MPI_ABI_VERSION
DEFINE_AS(MPI_Fint, File_c2f, (MPI_File fh), (fh))
{
    int number = number_of(fh);
    return number >= 0 ? number : NEXT(File_c2f)(fh);
}

DEFINE_AS(MPI_File, File_f2c, (MPI_Fint number), (number))
{
    struct our_file *found = numbered(number);
    return found ? (MPI_File)found : NEXT(File_f2c)(number);
}
#endif

#if MPI_VERSION >= 5
DEFINE_AS(int, File_toint, (MPI_File fh), (fh))
{
    int number = number_of(fh);
    return number >= 0 ? number : NEXT(File_toint)(fh);
}

DEFINE_AS(MPI_File, File_fromint, (int number), (number))
{
    struct our_file *found = numbered(number);
    return found ? (MPI_File)found : NEXT(File_fromint)(number);
}
#endif
