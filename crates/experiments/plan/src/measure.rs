//! What results tell of trials: quantities that cells are compared by, and other columns.

use crate::measurement::{Busy, Measurement, PlacedMeasurement};

/// What cells are compared by, and what a table or figure tells of each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Throughput in MiB/s.
    Throughput,
    /// Disk movements of all disks together.
    Movements,
    /// The time until all is done, in seconds.
    Time,
}

/// Something that is measured of a trial, and a column of the tables of results: of a cell it is the mean of the
/// trials.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// What its column is called, with its unit last.
    pub column: &'static str,
    /// Its value, if the trial has one.
    pub of: MeasureOf,
}

/// The value of a measure.
#[derive(Clone, Copy, Debug)]
pub enum MeasureOf {
    /// A whole number.
    Whole(fn(&Measurement) -> Option<u64>),
    /// Any number.
    Number(fn(&Measurement) -> Option<f64>),
}

impl Quantity {
    /// What plans call it.
    pub fn name(self) -> &'static str {
        match self {
            Quantity::Throughput => "throughput",
            Quantity::Movements => "movements",
            Quantity::Time => "time",
        }
    }

    /// The name of its column in tables of results, and its unit as that ends names of columns.
    pub(crate) fn column(self) -> (&'static str, &'static str) {
        match self {
            Quantity::Throughput => ("throughput_mib_s", "mib_s"),
            Quantity::Movements => ("disk_movements", "movements"),
            Quantity::Time => ("elapsed_s", "s"),
        }
    }

    /// Its value in a trial.
    pub fn of(self, measurement: &Measurement) -> f64 {
        match self {
            Quantity::Throughput => measurement.throughput_mib_s(),
            Quantity::Movements => measurement.disk_movements as f64,
            Quantity::Time => measurement.elapsed_s(),
        }
    }
}

impl Measure {
    /// Disk movements of all disks together.
    pub(crate) const MOVEMENTS: Measure =
        whole("disk_movements", |measurement| Some(measurement.disk_movements));

    /// What jobs that share disks did.
    pub(crate) const OF_PLACEMENTS: [Measure; 6] = [
        number("first_s", |measurement| measurement.placed.as_ref().map(PlacedMeasurement::first_s)),
        number("read_ms", |measurement| Some(measurement.placed.as_ref()?.read_ns as f64 / 1e6)),
        number("write_ms", |measurement| Some(measurement.placed.as_ref()?.write_ns as f64 / 1e6)),
        number("ratio", |measurement| measurement.placed.as_ref().map(PlacedMeasurement::ratio)),
        whole("pending_writes_most", |measurement| Some(measurement.placed.as_ref()?.pending_writes_most)),
        whole("pending_blocks_most", |measurement| Some(measurement.placed.as_ref()?.pending_blocks_most)),
    ];

    /// What write caches did.
    pub(crate) const OF_WRITE_CACHES: [Measure; 7] = [
        whole("flushes", |measurement| Some(measurement.flushes?.flushes)),
        whole("directory_flushes", |measurement| Some(measurement.flushes?.directory_flushes)),
        whole("blocks_of_a_disk_most", |measurement| Some(measurement.flushes?.blocks_of_a_disk_most)),
        whole("blocks_of_a_disk_fewest", |measurement| Some(measurement.flushes?.blocks_of_a_disk_fewest)),
        whole("write_mean_ns", |measurement| Some(measurement.flushes?.write_mean_ns)),
        whole("write_99_ns", |measurement| Some(measurement.flushes?.write_99_ns)),
        whole("write_longest_ns", |measurement| Some(measurement.flushes?.write_longest_ns)),
    ];

    /// Messages between nodes.
    pub(crate) const MESSAGES: Measure = whole("messages", |measurement| Some(measurement.messages));

    /// The simulated time, where it is not the quantity that cells are compared by.
    pub(crate) const VIRTUAL_TIME: Measure = number("virtual_s", |measurement| Some(measurement.elapsed_s()));

    /// Its value in a trial, as a number.
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

/// The parts of one kind in a measurement.
type Parts = fn(&Measurement) -> Busy;

/// The kinds of parts whose utilisation is told.
pub(crate) const PARTS: [(&str, Parts); 6] = [
    ("disk", |measurement| measurement.disks),
    ("bus", |measurement| measurement.buses),
    ("link", |measurement| measurement.links),
    ("router_link", |measurement| measurement.router_links),
    ("compute_processor", |measurement| measurement.compute_processors),
    ("io_processor", |measurement| measurement.io_processors),
];
