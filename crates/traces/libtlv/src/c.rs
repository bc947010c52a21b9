//! Functions of `include/tlv.h`.
//!
//! Each converts C arguments and calls the crate `tlv`. The `unsafe` code here is inherent to a C interface: pointers
//! are NUL-terminated strings, or null, which is rejected or has a meaning stated in the header.

#![expect(unsafe_code, reason = "an interface for C: see above")]

use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::{AtomicI32, Ordering};

use tlv::{
    Amount, Colour, CounterId, CounterInfo, Error, NameId, Refused, Result, Settings, StateId, StateInfo,
};

use crate::failure;

/// 1 if the user has switched recording off: the inline functions of the header then return at once.
#[unsafe(no_mangle)]
static tlv_is_off_: AtomicI32 = AtomicI32::new(0);

/// Converts a result to the C return value: a number, or -1 and errno.
fn to_c(outcome: Result<c_int>) -> c_int {
    outcome.unwrap_or_else(|error| {
        failure::set_error(&error);
        -1
    })
}

/// Converts a result to 0, or -1 and errno.
#[inline]
fn recorded(outcome: Result<(), Refused>) -> c_int {
    match outcome {
        Ok(()) => 0,
        Err(refused) => {
            failure::set_refused(refused);
            -1
        }
    }
}

/// Runs `work` with the number of a declared state, counter or argument. Rejects -1, the result of a failed
/// declaration.
#[inline]
fn with_declared(number: c_int, work: impl FnOnce(u32) -> Result<(), Refused>) -> c_int {
    match u32::try_from(number) {
        Ok(number) => recorded(work(number)),
        Err(_) => to_c(Err(invalid(&format!("number {number}"), "it was never declared"))),
    }
}

fn invalid(what: &str, why: &str) -> Error {
    Error::Invalid { what: what.into(), why: why.into() }
}

/// Copies a caller's string; invalid UTF-8 is replaced.
///
/// # Safety
/// `text` is null or a NUL-terminated string.
unsafe fn string(text: *const c_char, what: &str) -> Result<String> {
    if text.is_null() {
        return Err(invalid(what, "it is NULL"));
    }
    // SAFETY: promised by the caller.
    Ok(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// Copies a caller's optional string.
///
/// # Safety
/// As for [`string`].
unsafe fn string_if_any(text: *const c_char) -> Result<Option<String>> {
    // SAFETY: promised by the caller.
    if text.is_null() { Ok(None) } else { unsafe { string(text, "a text") }.map(Some) }
}

/// Converts a colour as defined in the header: 0xRRGGBB, or -1 to leave it to the viewer.
fn colour(number: c_int) -> Result<Option<Colour>> {
    match number {
        -1 => Ok(None),
        0..=0x00ff_ffff => {
            let [_, red, green, blue] = number.to_be_bytes();
            Ok(Some(Colour(red, green, blue)))
        }
        _ => Err(invalid(&format!("colour {number:#x}"), "expected 0xRRGGBB, or TLV_ANY_COLOUR")),
    }
}

// Start and end.

fn initialize(name: Result<String>) -> Result<c_int> {
    let settings = Settings::of_environment()?;
    tlv::start(&name?, &settings)?;
    tlv_is_off_.store((!settings.is_on).into(), Ordering::Relaxed);
    Ok(0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn TLV_Initialize(name: *const c_char) -> c_int {
    // SAFETY: a string, as the header requires.
    to_c(initialize(unsafe { string(name, "the name of the recording") }))
}

#[unsafe(no_mangle)]
extern "C" fn TLV_Finalize() -> c_int {
    tlv_is_off_.store(0, Ordering::Relaxed);
    to_c(tlv::finish().map(|()| 0))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn tlv_thread(name: *const c_char) -> c_int {
    // SAFETY: a string or null, as the header requires.
    let name = unsafe { string_if_any(name) };
    to_c(name.and_then(|name| {
        name.map_or_else(tlv::add_thread, |name| tlv::name_thread(&name))?;
        Ok(0)
    }))
}

// Declarations.

#[unsafe(no_mangle)]
unsafe extern "C" fn tlv_state(name: *const c_char, category: *const c_char, number: c_int) -> c_int {
    // SAFETY: strings, as the header requires.
    let texts =
        unsafe { string(name, "the name of a state").and_then(|name| Ok((name, string_if_any(category)?))) };
    to_c(texts.and_then(|(name, category)| {
        let info = StateInfo { name, category: category.unwrap_or_default(), colour: colour(number)? };
        Ok(tlv::declare_state(&info)?.0.cast_signed())
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn tlv_counter(name: *const c_char, unit: *const c_char) -> c_int {
    // SAFETY: strings, as the header requires.
    let texts =
        unsafe { string(name, "the name of a counter").and_then(|name| Ok((name, string_if_any(unit)?))) };
    to_c(texts.and_then(|(name, unit)| {
        let info = CounterInfo { name, unit: unit.unwrap_or_default() };
        Ok(tlv::declare_counter(&info)?.0.cast_signed())
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn tlv_argument(name: *const c_char) -> c_int {
    // SAFETY: a string, as the header requires.
    let name = unsafe { string(name, "the name of an argument") };
    to_c(name.and_then(|name| Ok(tlv::declare_name(&name)?.0.cast_signed())))
}

// Records.

#[unsafe(no_mangle)]
extern "C" fn tlv_begin(state: c_int) -> c_int {
    with_declared(state, |state| tlv::begin(StateId(state)))
}

#[unsafe(no_mangle)]
extern "C" fn tlv_end(state: c_int) -> c_int {
    with_declared(state, |state| tlv::end(StateId(state)))
}

#[unsafe(no_mangle)]
extern "C" fn tlv_count(counter: c_int, value: i64) -> c_int {
    with_declared(counter, |counter| tlv::count(CounterId(counter), Amount::Integer(value)))
}

#[unsafe(no_mangle)]
extern "C" fn tlv_count_real(counter: c_int, value: f64) -> c_int {
    with_declared(counter, |counter| tlv::count(CounterId(counter), Amount::Real(value)))
}

#[unsafe(no_mangle)]
extern "C" fn tlv_number(argument: c_int, value: i64) -> c_int {
    with_declared(argument, |name| tlv::argue(NameId(name), Amount::Integer(value)))
}

#[unsafe(no_mangle)]
extern "C" fn tlv_real(argument: c_int, value: f64) -> c_int {
    with_declared(argument, |name| tlv::argue(NameId(name), Amount::Real(value)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn tlv_text(argument: c_int, text: *const c_char) -> c_int {
    if text.is_null() {
        return to_c(Err(invalid("a text", "it is NULL")));
    }
    // SAFETY: a string, as the header requires.
    let text = unsafe { CStr::from_ptr(text) };
    with_declared(argument, |name| tlv::argue_text(NameId(name), text.to_bytes()))
}

#[unsafe(no_mangle)]
extern "C" fn tlv_flow() -> u64 {
    tlv::new_flow()
}

#[unsafe(no_mangle)]
extern "C" fn tlv_flow_out(flow: u64) -> c_int {
    recorded(tlv::flow_out(flow))
}

#[unsafe(no_mangle)]
extern "C" fn tlv_flow_in(flow: u64) -> c_int {
    recorded(tlv::flow_in(flow))
}

// Functions of the thesis.

#[unsafe(no_mangle)]
unsafe extern "C" fn TLV_AddState(
    begin: c_int,
    begin_name: *const c_char,
    end: c_int,
    end_name: *const c_char,
    number: c_int,
) -> c_int {
    // SAFETY: strings, as the header requires. The name of the end is checked, but not recorded.
    let names = unsafe {
        string(begin_name, "the name of a state")
            .and_then(|name| string(end_name, "the name of a state's end").map(|_| name))
    };
    to_c(names.and_then(|name| {
        let info = StateInfo { name, category: String::new(), colour: colour(number)? };
        tlv::declare_events(begin, end, &info)?;
        Ok(0)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn TLV_AddThread() -> c_int {
    recorded(tlv::add_thread())
}

#[unsafe(no_mangle)]
extern "C" fn TLV_Record(event: c_int) -> c_int {
    recorded(tlv::event(event))
}

/// # Safety
/// No requirements. The text is valid until the next error of this thread.
#[unsafe(no_mangle)]
extern "C" fn tlv_strerror() -> *const c_char {
    failure::last()
}
