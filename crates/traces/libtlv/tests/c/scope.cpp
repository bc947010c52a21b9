// scope.cpp - states that end with their block, also if an exception leaves it.
#include "check.h"

#include <stdexcept>
#include <thread>

static void fail(int state)
{
    tlv::scope in_state(state);
    throw std::runtime_error("out");
}

int main()
{
    static const int outer = tlv_state("outer", nullptr, TLV_ANY_COLOUR);
    static const int inner = tlv_state("inner", "kind", TLV_GREEN);
    {
        tlv::scope refused(outer);
    }
    CHECK(TLV_Initialize("scope") == 0);
    std::thread([] {
        tlv::scope in_outer(outer);
        try {
            fail(inner);
        } catch (const std::runtime_error &) {
        }
        tlv::scope again(inner);
    }).join();
    CHECK(TLV_Finalize() == 0);
}
