//! Settings that a user has chosen: a value for every field, and the resulting cases.

use std::collections::BTreeMap;

use description::MachineDescription;
use jobs::Contents;
use layout::{Grid, Problem, Shape};

use crate::case::Case;
use crate::{AccessPattern, DiskLayout, Error, Method, Options};

/// A value for every [field](crate::FIELDS).
#[derive(Clone, Debug)]
pub struct Choices {
    /// Name or path of the machine, in the form that [`MachineDescription::load_with`] accepts.
    pub machine: String,
    /// Replaced values of the machine, by dotted key.
    pub set: BTreeMap<String, String>,
    /// Access method; there is no default.
    pub method: Option<Method>,
    /// Layout of the file on each disk.
    pub layout: DiskLayout,
    /// Size of the file in bytes.
    pub file_bytes: u64,
    /// Rows and columns of the matrix in the file; by default as square as possible.
    pub shape: Option<Shape>,
    /// Rows and columns of the grid of compute nodes; by default as square as possible.
    pub grid: Option<Grid>,
    /// Kind of contents of the file.
    pub contents: Contents,
    /// Options of the methods.
    pub options: Options,
}

/// A comparison: each combination of these values is a case.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Machine, with the replaced values.
    pub machine: MachineDescription,
    /// Layouts of the files on each disk.
    pub layouts: Vec<DiskLayout>,
    /// Sizes of records, in bytes.
    pub records: Vec<u64>,
    /// Access patterns.
    pub patterns: Vec<AccessPattern>,
    /// Access methods.
    pub methods: Vec<Method>,
    /// Seed of all random numbers.
    pub seed: u64,
}

/// Reason why the cases of a comparison cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ComparisonError {
    /// A choice has no effect on any of the compared cases.
    #[error("{field}: {why}")]
    WithoutEffect {
        /// Name of the field.
        field: &'static str,
        /// Reason why the choice has no effect.
        why: &'static str,
        /// Method that the choice requires, if there is a single one.
        method: Option<Method>,
    },
    /// A case is invalid.
    #[error("{what}: {error}")]
    Case {
        /// Description of the case.
        what: String,
        /// Error of the case.
        error: Error,
    },
}

/// Reason why the shape and the grid have no effect.
pub const OF_NO_MATRIX: &str = "no selected pattern is a matrix";

const NO_WRITE_CACHE: &str = "only the write-cached method has a write cache";
const NO_BUFFERS: &str = "only disk-directed and write-cached operations use the buffers of I/O nodes";

/// Returns the reason why a field has no effect with this method, whatever its value; `None` if it may have an effect.
pub fn unheeded_by(field: &str, method: Method) -> Option<&'static str> {
    match field {
        "outstanding" | "scheduling" | "thread_per_request" | "prefetch" => {
            (method == Method::DiskDirected).then_some("disk-directed I/O makes no block requests")
        }
        "write_cache" | "directory_fraction" | "flush_at" | "flush_after" => {
            (method != Method::WriteCached).then_some(NO_WRITE_CACHE)
        }
        "buffers" => {
            let is_collective = matches!(method, Method::DiskDirected | Method::WriteCached);
            (!is_collective).then_some(NO_BUFFERS)
        }
        _ => None,
    }
}

impl Default for Choices {
    fn default() -> Self {
        Choices {
            machine: "starfish-1996".to_owned(),
            set: BTreeMap::new(),
            method: None,
            layout: DiskLayout::Contiguous,
            file_bytes: 10 << 20,
            shape: None,
            grid: None,
            contents: Contents::Real,
            options: Options::default(),
        }
    }
}

impl Choices {
    /// Returns the case of these choices.
    pub fn case(
        &self,
        machine: MachineDescription,
        method: Method,
        pattern: AccessPattern,
        record_bytes: u64,
        seed: u64,
    ) -> Case {
        let problem = Problem::new(self.file_bytes, record_bytes, machine.nodes.compute.value);
        Case {
            machine,
            method,
            pattern,
            problem: Problem { shape: self.shape, grid: self.grid, ..problem },
            layout: self.layout,
            options: self.options,
            contents: self.contents,
            seed,
        }
    }

    /// Returns a case for each combination of the compared values, after checking it. The order is by layout, record
    /// size and pattern, and then the methods in their order. A method ignores options that only other methods have.
    pub fn cases(&self, compared: &Comparison) -> Result<Vec<Case>, ComparisonError> {
        self.check_methods(&compared.methods)?;
        let mut cases = Vec::new();
        for &layout in &compared.layouts {
            for &record_bytes in &compared.records {
                for &pattern in &compared.patterns {
                    for &method in &compared.methods {
                        let choices = Choices { layout, options: self.options.of(method), ..self.clone() };
                        let machine = compared.machine.clone();
                        let case = choices.case(machine, method, pattern, record_bytes, compared.seed);
                        case.check().map_err(|error| {
                            let what = format!("{method} {pattern} with records of {record_bytes} bytes");
                            ComparisonError::Case { what, error }
                        })?;
                        cases.push(case);
                    }
                }
            }
        }
        self.check_effects(&cases)?;
        Ok(cases)
    }

    /// Rejects a choice that has no effect on any of these cases.
    fn check_effects(&self, cases: &[Case]) -> Result<(), ComparisonError> {
        let (options, usual) = (&self.options, Options::default());
        let chosen = [
            ("memget_writes", options.memget_writes),
            ("prefetch", options.prefetch_blocks != usual.prefetch_blocks),
            ("queued", options.queued != usual.queued),
        ];
        for (field, _) in chosen.into_iter().filter(|(_, is_chosen)| *is_chosen) {
            let reasons: Option<Vec<&str>> = cases.iter().map(|case| case.ignores(field)).collect();
            if let Some(why) = reasons.and_then(|reasons| reasons.first().copied()) {
                return Err(ComparisonError::WithoutEffect { field, why, method: None });
            }
        }
        Ok(())
    }

    /// Rejects a choice that has no effect with any of these methods.
    pub fn check_methods(&self, methods: &[Method]) -> Result<(), ComparisonError> {
        let refused = |field, why, method| Err(ComparisonError::WithoutEffect { field, why, method });
        let has = |method| methods.contains(&method);
        if self.options.presort && !has(Method::DiskDirected) {
            return refused(
                "presort",
                "only the disk-directed method can presort",
                Some(Method::DiskDirected),
            );
        }
        let fetches = |method: &Method| matches!(method, Method::Traditional | Method::TwoPhase);
        if self.options.memget_writes && !methods.iter().any(fetches) {
            let why = "only the traditional and the two-phase method make write requests to fetch data for";
            return refused("memget_writes", why, None);
        }
        let options = &self.options;
        let of_write_cache = [
            ("write_cache", options.write_cache_bytes.is_some()),
            ("directory_fraction", options.division.is_some()),
            ("flush_at", options.flush_at.is_some()),
            ("flush_after", options.flush_after.is_some()),
        ];
        if let Some(&(field, _)) = of_write_cache.iter().find(|(_, is_chosen)| *is_chosen)
            && !has(Method::WriteCached)
        {
            return refused(field, NO_WRITE_CACHE, Some(Method::WriteCached));
        }
        let has_buffers = has(Method::DiskDirected) || has(Method::WriteCached);
        if options.buffers != Options::default().buffers && !has_buffers {
            return refused("buffers", NO_BUFFERS, Some(Method::DiskDirected));
        }
        if self.options.page_cache_bytes > 0 && !has(Method::Traditional) {
            let why = "only the traditional method can use a page cache";
            return refused("page_cache", why, Some(Method::Traditional));
        }
        Ok(())
    }
}

impl Options {
    /// Returns these options where the method uses them, and defaults for all others.
    pub fn of(self, method: Method) -> Options {
        let (usual, is_directed) = (Options::default(), method == Method::DiskDirected);
        let is_traditional = method == Method::Traditional;
        Options {
            presort: self.presort && is_directed,
            buffers: if is_directed || method == Method::WriteCached { self.buffers } else { usual.buffers },
            memget_writes: self.memget_writes && matches!(method, Method::Traditional | Method::TwoPhase),
            page_cache_bytes: if is_traditional { self.page_cache_bytes } else { usual.page_cache_bytes },
            window: self.window.filter(|_| is_traditional || self.page_cache_bytes == 0),
            ..self
        }
    }
}
