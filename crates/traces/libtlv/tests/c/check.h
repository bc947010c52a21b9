/* check.h - a failed check prints its place and reason, and ends the test. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tlv.h>

#define CHECK(condition)                                                                                  \
    do {                                                                                                  \
        if (!(condition)) {                                                                               \
            fprintf(stderr, "%s:%d: %s; errno %d, %s\n", __FILE__, __LINE__, #condition, errno, tlv_strerror()); \
            exit(1);                                                                                      \
        }                                                                                                 \
    } while (0)

/* Checks that a call fails: CONDITION holds, errno is NUMBER, and the error text contains WORDS. */
#define CHECK_FAILS(number, words, condition)             \
    do {                                                  \
        errno = 0;                                        \
        CHECK(condition);                                 \
        CHECK(errno == (number));                         \
        CHECK(strstr(tlv_strerror(), words) != NULL);     \
    } while (0)

#endif
