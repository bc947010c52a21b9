//! Those who have a file open together.

use std::ffi::{c_int, c_void};

use crate::failure::{ErrorClass, MpiError, Outcome};

/// How the processes of a group tell each other numbers: what each brings, all get, by rank. 0 if that has worked.
pub(crate) type Gather = unsafe extern "C" fn(group: *mut c_void, own: u64, all: *mut u64) -> c_int;

/// The processes that have opened a file together, as one of them knows them.
pub(crate) struct Members {
    rank: u32,
    size: u32,
    gather: Gather,
    group: *mut c_void,
}

impl Members {
    /// The members of a group, which `gather` knows by what `group` points to.
    pub(crate) fn new(rank: u32, size: u32, gather: Gather, group: *mut c_void) -> Members {
        Members { rank, size, gather, group }
    }

    pub(crate) fn rank(&self) -> u32 {
        self.rank
    }

    pub(crate) fn size(&self) -> u32 {
        self.size
    }

    pub(crate) fn is_first(&self) -> bool {
        self.rank == 0
    }

    /// What each has brought, by rank. Waits for all of them.
    pub(crate) fn gather(&self, own: u64) -> Outcome<Vec<u64>> {
        let mut all = vec![own; self.size as usize];
        if self.size == 1 {
            return Ok(all);
        }
        #[expect(unsafe_code, reason = "a call into C, with room for as many numbers as there are members")]
        // SAFETY: as the reason says; the function and its group are those of the caller of `starfish_mpi_open`.
        let code = unsafe { (self.gather)(self.group, own, all.as_mut_ptr()) };
        match code {
            0 => Ok(all),
            _ => Err(MpiError::new(ErrorClass::Io, "the processes of a file cannot reach each other")),
        }
    }

    /// Waits for the others; fails if it has failed for any of them.
    pub(crate) fn agree<T>(&self, outcome: Outcome<T>) -> Outcome<T> {
        let number = outcome.as_ref().err().map_or(0, |error| error.class as u64);
        let numbers = self.gather(number);
        let value = outcome?;
        let (number, rank) =
            numbers?.into_iter().zip(0..).max_by_key(|&(number, _)| number).unwrap_or((0, 0));
        match number {
            0 => Ok(value),
            _ => {
                let text = format!("it has failed for process {rank}");
                Err(MpiError::new(ErrorClass::numbered(number), text))
            }
        }
    }
}
