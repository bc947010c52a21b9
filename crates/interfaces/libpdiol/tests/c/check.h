/* check.h - checks that print the place and the reason of a failure. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pdiol.h>

#define CHECK(condition)                                                                                    \
    do {                                                                                                    \
        if (!(condition)) {                                                                                 \
            fprintf(stderr, "%s:%d: %s; errno %d, %s\n", __FILE__, __LINE__, #condition, errno, pdiol_strerror()); \
            exit(1);                                                                                        \
        }                                                                                                   \
    } while (0)

/* Checks that a call fails with this errno, and with a message. */
#define CHECK_FAILS(number, condition)       \
    do {                                     \
        errno = 0;                           \
        CHECK(condition);                    \
        CHECK(errno == (number));            \
        CHECK(pdiol_strerror()[0] != '\0');  \
    } while (0)

#endif
