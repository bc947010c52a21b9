/* tlv.h - records what the threads of a program do, for the Thread Log Viewer.
 *
 *     TLV_Initialize("sort");                        // sort.tlv; this thread is recorded
 *     int merge = tlv_state("merge", NULL, TLV_BLUE);
 *     ...
 *     tlv_begin(merge);
 *     ...
 *     tlv_end(merge);
 *     TLV_Finalize();
 *
 * Compile and link with: cc program.c $(pkg-config --cflags --libs tlv)
 * Look at it with: starfish view sort.tlv
 *
 * Functions that give an int give 0, or what they are asked for, or else -1; then errno is set, and tlv_strerror() says
 * why. With TLV=off in the environment all of them succeed and nothing is recorded. tlv(7) is an overview.
 */
#ifndef TLV_H
#define TLV_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Colours: any 0xRRGGBB. Those with a name can be told apart by people who see colours differently (Okabe and Ito). */
#define TLV_ANY_COLOUR (-1) /* the viewer's choice */
#define TLV_RED 0xd55e00
#define TLV_ORANGE 0xe69f00
#define TLV_YELLOW 0xf0e442
#define TLV_GREEN 0x009e73
#define TLV_CYAN 0x56b4e9
#define TLV_BLUE 0x0072b2
#define TLV_MAGENTA 0xcc79a7
#define TLV_BLACK 0x000000
#define TLV_GREY 0x999999

/* Beginning and end. The file is NAME.tlv, or what TLV_FILE says. The thread that begins is recorded. */
int TLV_Initialize(const char *name);
int TLV_Finalize(void);

/* The functions of the thesis: states by the numbers of the events that begin and end them. A thread that was not added
 * is not recorded. */
int TLV_AddState(int begin, const char *begin_name, int end, const char *end_name, int colour);
int TLV_AddThread(void);
int TLV_Record(int event);

/* States by themselves. They nest, and a thread that begins one is recorded from then on. What is declared again is the
 * same. Those that are declared have numbers from 0 on. */
int tlv_state(const char *name, const char *category, int colour); /* category: for filters, or NULL */
int tlv_begin(int state);
int tlv_end(int state);

/* What differs from time to time: numbers and texts that belong to the state this thread began last. */
int tlv_argument(const char *name);
int tlv_number(int argument, int64_t value);
int tlv_real(int argument, double value);
int tlv_text(int argument, const char *text); /* 500 bytes of it */

/* Numbers over time, such as the length of a queue. */
int tlv_counter(const char *name, const char *unit); /* unit: or NULL */
int tlv_count(int counter, int64_t value);
int tlv_count_real(int counter, double value);

/* From one thread to another, also of another process: what leaves here arrives there by the same number. */
uint64_t tlv_flow(void); /* a new one */
int tlv_flow_out(uint64_t flow);
int tlv_flow_in(uint64_t flow);

/* Records this thread from now on, and calls it so; NULL: by the name the system has for it. */
int tlv_thread(const char *name);

/* The last error of this thread, in words, until its next one. Never NULL. */
const char *tlv_strerror(void);

/* Switched off, a record is a look at this: what follows is how, and not part of the interface. */
#if defined(__GNUC__)

extern const int tlv_is_off_;

static inline int tlv_off_(void)
{
    return __builtin_expect(__atomic_load_n(&tlv_is_off_, __ATOMIC_RELAXED) != 0, 0) != 0;
}

#define TLV_Record(event) (tlv_off_() ? 0 : (TLV_Record)(event))
#define tlv_begin(state) (tlv_off_() ? 0 : (tlv_begin)(state))
#define tlv_end(state) (tlv_off_() ? 0 : (tlv_end)(state))
#define tlv_number(argument, value) (tlv_off_() ? 0 : (tlv_number)(argument, value))
#define tlv_real(argument, value) (tlv_off_() ? 0 : (tlv_real)(argument, value))
#define tlv_text(argument, text) (tlv_off_() ? 0 : (tlv_text)(argument, text))
#define tlv_count(counter, value) (tlv_off_() ? 0 : (tlv_count)(counter, value))
#define tlv_count_real(counter, value) (tlv_off_() ? 0 : (tlv_count_real)(counter, value))
#define tlv_flow_out(flow) (tlv_off_() ? 0 : (tlv_flow_out)(flow))
#define tlv_flow_in(flow) (tlv_off_() ? 0 : (tlv_flow_in)(flow))

#endif

#ifdef __cplusplus
}

namespace tlv {

/* A state that this thread is in until the end of the block:
 *
 *     static const int merge = tlv_state("merge", nullptr, TLV_BLUE);
 *     tlv::scope in_merge(merge);
 */
class scope {
public:
    explicit scope(int state) : state_(state), is_begun_(tlv_begin(state) == 0) {}
    ~scope()
    {
        if (is_begun_)
            tlv_end(state_);
    }
    scope(const scope &) = delete;
    scope &operator=(const scope &) = delete;

private:
    int state_;
    bool is_begun_;
};

} // namespace tlv
#endif

#endif
