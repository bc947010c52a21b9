//! Time, in ticks of what is cheapest to read, and what ticks are in nanoseconds.
//!
//! A record carries ticks as they were read: of the processor's counter where it runs evenly on all processors, else of
//! the monotonic clock, whose ticks are nanoseconds. The writer reads both at the same moment each time it comes round,
//! and puts what was recorded in between on the line through the two last readings. So nothing is calibrated
//! beforehand, times follow the monotonic clock (and its adjustments) however long a program runs, and an error is that
//! of one reading, some 20 ns.
//!
//! On an AMD EPYC of 2026 the counter takes 9.5 ns to read, the clock 22 to 31. A library that scales the counter by
//! what it measured at the start (quanta, 0.13) was off by 88 us after 5 s there, and by an hour's end would be by a
//! twentieth of a second.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::time::{ClockId, clock_gettime};

/// What clocks the kernel has found good enough to choose from. One of the processor's that runs unevenly is not among
/// them.
const CLOCKS: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";

/// Whether ticks are those of the processor's counter.
static IS_COUNTER: AtomicBool = AtomicBool::new(false);

/// Decides once what ticks are, before the first is read.
pub(crate) fn choose() {
    IS_COUNTER.store(counter::is_even(), Ordering::Relaxed);
}

/// Now.
#[inline]
pub(crate) fn now() -> u64 {
    if IS_COUNTER.load(Ordering::Relaxed) { counter::read() } else { nanoseconds(ClockId::CLOCK_MONOTONIC) }
}

/// What a clock of the system shows.
pub(crate) fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock).expect("every system has this clock");
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

#[cfg(target_arch = "x86_64")]
mod counter {
    use std::arch::x86_64::{__cpuid, _rdtsc};

    use super::{CLOCKS, fs};

    /// The functions of CPUID that tell the highest function, and what is invariant.
    const HIGHEST: u32 = 0x8000_0000;
    const INVARIANT: u32 = 0x8000_0007;

    /// Whether it runs at one speed, says the processor, and on all processors alike, says the kernel.
    pub(super) fn is_even() -> bool {
        let is_invariant = __cpuid(HIGHEST).eax >= INVARIANT && __cpuid(INVARIANT).edx & 1 << 8 != 0;
        is_invariant && fs::read_to_string(CLOCKS).is_ok_and(|clocks| clocks.split_whitespace().any(is_tsc))
    }

    fn is_tsc(clock: &str) -> bool {
        clock == "tsc"
    }

    #[inline]
    #[expect(unsafe_code, reason = "there is no safe way to read it")]
    pub(super) fn read() -> u64 {
        // SAFETY: it reads a register that every x86-64 has, and that Linux lets programs read.
        unsafe { _rdtsc() }
    }
}

#[cfg(target_arch = "aarch64")]
mod counter {
    use super::{CLOCKS, fs};

    /// Whether the kernel trusts it; the architecture says that it runs at one speed and alike on all processors.
    pub(super) fn is_even() -> bool {
        fs::read_to_string(CLOCKS).is_ok_and(|clocks| clocks.contains("arch_sys_counter"))
    }

    #[inline]
    #[expect(unsafe_code, reason = "there is no safe way to read it")]
    pub(super) fn read() -> u64 {
        let count: u64;
        // SAFETY: it reads a register that Linux lets programs read.
        unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack)) };
        count
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod counter {
    pub(super) fn is_even() -> bool {
        false
    }

    pub(super) fn read() -> u64 {
        unreachable!("nothing is known of a counter here")
    }
}

/// Ticks and the monotonic clock at the same moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TickReading {
    /// The ticks.
    pub(crate) ticks: u64,
    /// The clock, in nanoseconds.
    pub(crate) ns: u64,
}

impl TickReading {
    /// Reads both: the clock between two looks at the ticks, a few times, of which the closest counts. The others may
    /// have been interrupted.
    pub(crate) fn take() -> Self {
        let attempt = || {
            let before = now();
            let ns = nanoseconds(ClockId::CLOCK_MONOTONIC);
            let apart = now().saturating_sub(before);
            (apart, TickReading { ticks: before + apart / 2, ns })
        };
        let attempts = [attempt(), attempt(), attempt(), attempt()];
        attempts.into_iter().min_by_key(|(apart, _)| *apart).expect("there are four").1
    }
}

/// Readings that are closer together than this, in nanoseconds, give no slope.
const APART: u64 = 1_000_000;

/// What ticks are in nanoseconds: a line through two readings.
#[derive(Debug)]
pub(crate) struct TickScale {
    start: TickReading,
    from: TickReading,
    to: TickReading,
}

impl TickScale {
    /// Counts nanoseconds from this reading on. Nothing can be told before the next.
    pub(crate) fn new(start: TickReading) -> Self {
        TickScale { start, from: start, to: start }
    }

    /// Goes on to a new reading.
    pub(crate) fn advance(&mut self, reading: TickReading) {
        if self.to.ns - self.from.ns >= APART {
            self.from = self.to;
        }
        self.to = reading;
    }

    /// Nanoseconds since the start; none before it. A tick somewhat outside of the two readings is told as well: a
    /// thread may have been held up between reading its ticks and recording them.
    pub(crate) fn ns(&self, ticks: u64) -> Option<u64> {
        let TickScale { start, from, to } = self;
        let slope = match to.ticks.saturating_sub(from.ticks) {
            0 => 1.0,
            ticks => to.ns.saturating_sub(from.ns) as f64 / ticks as f64,
        };
        // Exact up to 2^53 ticks apart: some days at 8 GHz, of which the two readings are a tenth of a second.
        let since_from = (ticks.wrapping_sub(from.ticks).cast_signed() as f64 * slope) as i64;
        let since_start = (from.ns - start.ns).checked_add_signed(since_from)?;
        (ticks >= start.ticks).then_some(since_start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_between_readings_are_on_the_line_through_them() {
        let reading = |ticks, ns| TickReading { ticks, ns };
        let mut scale = TickScale::new(reading(1000, 5_000_000));
        scale.advance(reading(3_001_000, 6_000_000));
        assert_eq!(scale.ns(1000), Some(0));
        assert_eq!(scale.ns(1_501_000), Some(500_000));
        assert_eq!(scale.ns(3_001_000), Some(1_000_000));
        assert_eq!(scale.ns(999), None, "it was before the start");
        // The clock has been made faster since.
        scale.advance(reading(6_001_000, 8_000_000));
        assert_eq!(scale.ns(3_001_000), Some(1_000_000), "no jump");
        assert_eq!(scale.ns(4_501_000), Some(2_000_000));
        assert_eq!(scale.ns(3_000_998), Some(999_999), "of somebody who was late");
    }

    #[test]
    fn readings_that_are_close_together_make_no_slope_of_their_own() {
        let reading = |ticks, ns| TickReading { ticks, ns };
        let mut scale = TickScale::new(reading(0, 0));
        scale.advance(reading(3_000_000, 1_000_000));
        scale.advance(reading(3_000_300, 1_000_150));
        scale.advance(reading(6_000_000, 2_000_000));
        assert_eq!(scale.ns(4_500_000), Some(1_500_000));
    }

    #[test]
    fn ticks_go_up_and_are_as_long_as_the_clock_says() {
        choose();
        let mut scale = TickScale::new(TickReading::take());
        let begin = (nanoseconds(ClockId::CLOCK_MONOTONIC), now());
        std::thread::sleep(std::time::Duration::from_millis(20));
        let end = (nanoseconds(ClockId::CLOCK_MONOTONIC), now());
        assert!(begin.1 <= end.1);
        scale.advance(TickReading::take());
        let told = scale.ns(end.1).expect("later") - scale.ns(begin.1).expect("later");
        // A thread may be interrupted between clock and ticks for as long as others compute.
        assert!(told.abs_diff(end.0 - begin.0) < 5_000_000, "{told} instead of {}", end.0 - begin.0);
    }
}
