/* tlv.h - records the activities of the threads of a program, for the Thread Log Viewer.
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
 * View the trace with: starfish view sort.tlv
 *
 * Functions that return an int return 0 or the requested number, or -1 on failure. On failure they set errno, and
 * tlv_strerror() returns the reason. With TLV=off in the environment, all functions succeed and record nothing. tlv(7)
 * is an overview.
 */
#ifndef TLV_H
#define TLV_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Colours: any 0xRRGGBB. Colour-blind people can distinguish the named colours (palette of Okabe and Ito). */
#define TLV_ANY_COLOUR (-1) /* the viewer chooses the colour */
#define TLV_RED 0xd55e00
#define TLV_ORANGE 0xe69f00
#define TLV_YELLOW 0xf0e442
#define TLV_GREEN 0x009e73
#define TLV_CYAN 0x56b4e9
#define TLV_BLUE 0x0072b2
#define TLV_MAGENTA 0xcc79a7
#define TLV_BLACK 0x000000
#define TLV_GREY 0x999999

/* Start and end of the recording. The file is NAME.tlv, or the file that TLV_FILE names. The thread that starts the
 * recording is recorded. */
int TLV_Initialize(const char *name);
int TLV_Finalize(void);

/* Functions of the thesis: a program declares a state by the numbers of the events that begin and end it. A thread is
 * recorded only after TLV_AddThread(). */
int TLV_AddState(int begin, const char *begin_name, int end, const char *end_name, int colour);
int TLV_AddThread(void);
int TLV_Record(int event);

/* States without event numbers. States nest. A thread is recorded from its first tlv_begin() on. A repeated declaration
 * of a state returns the same number; numbers begin at 0. */
int tlv_state(const char *name, const char *category, int colour); /* category, for filters: may be NULL */
int tlv_begin(int state);
int tlv_end(int state);

/* Arguments: numbers and texts that describe one occurrence of a state: the state that this thread began last. */
int tlv_argument(const char *name);
int tlv_number(int argument, int64_t value);
int tlv_real(int argument, double value);
int tlv_text(int argument, const char *text); /* truncated to 500 bytes */

/* Counters: numbers over time, such as the length of a queue. */
int tlv_counter(const char *name, const char *unit); /* unit may be NULL */
int tlv_count(int counter, int64_t value);
int tlv_count_real(int counter, double value);

/* Flows: something passes from one thread to another, possibly in another process, such as a message. Sender and
 * receiver record the same number. */
uint64_t tlv_flow(void); /* returns a new number */
int tlv_flow_out(uint64_t flow);
int tlv_flow_in(uint64_t flow);

/* Records this thread from now on, under this name; if NULL, under its name in the system. */
int tlv_thread(const char *name);

/* Returns the text of the last error of this thread, valid until its next error. Never NULL. */
const char *tlv_strerror(void);

/* With recording off, a record only checks this variable. The rest of the C part is not part of the interface. */
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

/* State of this thread until the end of the block:
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
