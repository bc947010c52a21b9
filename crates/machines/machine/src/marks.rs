//! Marks of rare places: code for races and failures that few runs reach.
//!
//! [`sometimes!`](crate::sometimes) marks a place with the plain name of its event. With the feature `marks`, a thread
//! records the marks that it reaches, and a test takes the record after a run. A simulated machine runs on one thread,
//! so the record of a run is complete. Without the feature, a mark is no code. The crate `seeds` lists the marks of the
//! sources and counts the runs that reach each of them.

use std::collections::BTreeSet;

/// True if this build records marks.
pub const ARE_RECORDED: bool = cfg!(feature = "marks");

#[cfg(feature = "marks")]
thread_local! {
    static REACHED: std::cell::RefCell<BTreeSet<&'static str>> = const { std::cell::RefCell::new(BTreeSet::new()) };
}

/// Marks a rare place with the name of its event, a string literal that no other mark has. The second form is for a
/// condition without side effects: a build without the feature `marks` does not evaluate it.
///
/// ```
/// # let is_late = true;
/// machine::sometimes!("a late answer is ignored");
/// machine::sometimes!("an answer comes late", if is_late);
/// ```
#[cfg(feature = "marks")]
#[macro_export]
macro_rules! sometimes {
    ($name:literal) => {
        $crate::marks::reach($name)
    };
    ($name:literal, if $condition:expr) => {
        if $condition {
            $crate::marks::reach($name)
        }
    };
}

/// Marks a rare place. This build has no code for it; see `marks.rs`.
#[cfg(not(feature = "marks"))]
#[macro_export]
macro_rules! sometimes {
    ($name:literal) => {};
    ($name:literal, if $condition:expr) => {};
}

/// Records that this thread has reached a mark.
#[cfg(feature = "marks")]
pub fn reach(name: &'static str) {
    REACHED.with_borrow_mut(|reached| reached.insert(name));
}

/// Returns the marks that this thread has reached since the last call.
pub fn take() -> BTreeSet<&'static str> {
    #[cfg(feature = "marks")]
    return REACHED.take();
    #[cfg(not(feature = "marks"))]
    BTreeSet::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reached_marks_are_recorded_until_they_are_taken() {
        take();
        for _round in 0..3 {
            crate::sometimes!("in a loop");
            crate::sometimes!("in the second round", if _round == 1);
            crate::sometimes!("in the fourth round", if _round == 3);
        }
        let expected: &[&str] = if ARE_RECORDED { &["in a loop", "in the second round"] } else { &[] };
        assert!(take().into_iter().eq(expected.iter().copied()));
        assert!(take().is_empty());
    }
}
