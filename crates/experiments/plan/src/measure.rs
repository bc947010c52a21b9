//! Measures of trials in results: quantities for comparing cells, and other columns.

use crate::measurement::{Busy, Measurement, PlacedMeasurement};

/// A quantity by which cells are compared, and which a published table or figure can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Throughput in MiB/s.
    Throughput,
    /// Number of disk movements of all disks.
    Movements,
    /// Time until all work is done, in seconds.
    Time,
}

/// A measure of a trial, which is a column in the tables of results. The measure of a cell is the mean of its trials.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// Name of the column, with the unit last.
    pub column: &'static str,
    /// Function that returns the value, if the trial has one.
    pub of: MeasureOf,
}

/// Function that returns the value of a measure.
#[derive(Clone, Copy, Debug)]
pub enum MeasureOf {
    /// A whole number.
    Whole(fn(&Measurement) -> Option<u64>),
    /// Any number.
    Number(fn(&Measurement) -> Option<f64>),
}

impl Quantity {
    /// Returns the name in plans.
    pub fn name(self) -> &'static str {
        match self {
            Quantity::Throughput => "throughput",
            Quantity::Movements => "movements",
            Quantity::Time => "time",
        }
    }

    /// Returns the column in tables of results, and the unit as a suffix of column names.
    pub(crate) fn column(self) -> (&'static str, &'static str) {
        match self {
            Quantity::Throughput => ("throughput_mib_s", "mib_s"),
            Quantity::Movements => ("disk_movements", "movements"),
            Quantity::Time => ("elapsed_s", "s"),
        }
    }

    /// Returns the value for a trial.
    pub fn of(self, measurement: &Measurement) -> f64 {
        match self {
            Quantity::Throughput => measurement.throughput_mib_s(),
            Quantity::Movements => measurement.disk_movements as f64,
            Quantity::Time => measurement.elapsed_s(),
        }
    }
}

impl Measure {
    /// Number of disk movements of all disks.
    pub(crate) const MOVEMENTS: Measure =
        whole("disk_movements", |measurement| Some(measurement.disk_movements));

    /// Measures of jobs that share disks.
    pub(crate) const OF_PLACEMENTS: [Measure; 6] = [
        number("first_s", |measurement| measurement.placed.as_ref().map(PlacedMeasurement::first_s)),
        number("read_ms", |measurement| Some(measurement.placed.as_ref()?.read_ns as f64 / 1e6)),
        number("write_ms", |measurement| Some(measurement.placed.as_ref()?.write_ns as f64 / 1e6)),
        number("ratio", |measurement| measurement.placed.as_ref().map(PlacedMeasurement::ratio)),
        whole("pending_writes_most", |measurement| Some(measurement.placed.as_ref()?.pending_writes_most)),
        whole("pending_blocks_most", |measurement| Some(measurement.placed.as_ref()?.pending_blocks_most)),
    ];

    /// Measures of write caches.
    pub(crate) const OF_WRITE_CACHES: [Measure; 7] = [
        whole("flushes", |measurement| Some(measurement.flushes?.flushes)),
        whole("directory_flushes", |measurement| Some(measurement.flushes?.directory_flushes)),
        whole("blocks_of_a_disk_most", |measurement| Some(measurement.flushes?.blocks_of_a_disk_most)),
        whole("blocks_of_a_disk_fewest", |measurement| Some(measurement.flushes?.blocks_of_a_disk_fewest)),
        whole("write_mean_ns", |measurement| Some(measurement.flushes?.write_mean_ns)),
        whole("write_99_ns", |measurement| Some(measurement.flushes?.write_99_ns)),
        whole("write_longest_ns", |measurement| Some(measurement.flushes?.write_longest_ns)),
    ];

    /// Number of messages between nodes.
    pub(crate) const MESSAGES: Measure = whole("messages", |measurement| Some(measurement.messages));

    /// Simulated time, for kinds of plans whose cells are compared by another quantity.
    pub(crate) const VIRTUAL_TIME: Measure = number("virtual_s", |measurement| Some(measurement.elapsed_s()));

    /// Returns the value for a trial as a number.
    pub fn number(&self, measurement: &Measurement) -> Option<f64> {
        match self.of {
            MeasureOf::Whole(of) => of(measurement).map(|whole| whole as f64),
            MeasureOf::Number(of) => of(measurement),
        }
    }
}

const fn whole(column: &'static str, of: fn(&Measurement) -> Option<u64>) -> Measure {
    Measure { column, of: MeasureOf::Whole(of) }
}

const fn number(column: &'static str, of: fn(&Measurement) -> Option<f64>) -> Measure {
    Measure { column, of: MeasureOf::Number(of) }
}

/// Function that returns the busy times of the parts of one kind.
type Parts = fn(&Measurement) -> Busy;

/// Kinds of parts whose utilisation is in the results.
pub(crate) const PARTS: [(&str, Parts); 6] = [
    ("disk", |measurement| measurement.disks),
    ("bus", |measurement| measurement.buses),
    ("link", |measurement| measurement.links),
    ("router_link", |measurement| measurement.router_links),
    ("compute_processor", |measurement| measurement.compute_processors),
    ("io_processor", |measurement| measurement.io_processors),
];
