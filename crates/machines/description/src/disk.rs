//! Descriptions of the three kinds of disk, and checks of their values.
//!
//! A *mechanical* disk has a geometry, an arm, a rotating medium and a controller with a cache, in the terms of
//! Ruemmler & Wilkes (1994). A *streaming* disk has only a rate and a positioning time. A *drawn* disk has an arm, and
//! a rotation described only by its mean latency. The crate `disk` documents the effect of each number.

use std::fmt;
use std::path::Path;

use machine::Duration;
use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

use crate::quantity::{self, Bytes, Rate, Rpm, Time, WrittenAsText};
use crate::{Description, Misfit, Sourced};

/// Disk of one of the kinds selected by `kind = "..."`.
#[derive(Clone, Debug)]
pub enum DiskDescription {
    /// `kind = "mechanical"`: arm, rotation and cache.
    Mechanical(Box<MechanicalDisk>),
    /// `kind = "streaming"`: a rate, and a fixed positioning time for every access that does not continue the previous
    /// one.
    Streaming(Box<StreamingDisk>),
    /// `kind = "drawn"`: a linear seek, and a rotational latency drawn at random for every access.
    Drawn(Box<DrawnDisk>),
}

/// Disk with an arm, rotating platters, and a controller with a read-ahead cache.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MechanicalDisk {
    #[serde(rename = "kind")]
    _kind: IgnoredAny,
    /// Name of the disk.
    pub name: String,
    /// Bytes in a sector.
    pub sector_bytes: Sourced<Bytes>,
    /// Sectors on every track.
    pub sectors_per_track: Sourced<u32>,
    /// Data tracks in every cylinder; equal to the number of heads.
    pub tracks_per_cylinder: Sourced<u32>,
    /// Number of cylinders, including spare ones.
    pub cylinders: Sourced<u32>,
    /// Tracks that hold data, in the order of their sector numbers.
    pub regions: Sourced<Vec<Region>>,
    /// Speed of the spindle.
    pub rotation: Sourced<Rpm>,
    /// Offset in sectors of a track against the previous track of the same cylinder.
    pub track_skew: Sourced<u32>,
    /// Offset in sectors of the first track of a cylinder against the last track of the previous cylinder.
    pub cylinder_skew: Sourced<u32>,
    /// Time to switch to another head of the same cylinder.
    pub head_switch: Sourced<Time>,
    /// Cylinder of the arm when the machine starts.
    pub initial_cylinder: Sourced<u32>,
    /// Time to move the arm.
    pub seek: Seek,
    /// Controller between the mechanics and the bus.
    pub controller: Controller,
}

/// Seek curve: a square root for short distances, a line for long ones.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seek {
    /// Constant part of a short seek.
    pub short_base: Sourced<Time>,
    /// Part of a short seek that is multiplied by the square root of the distance in cylinders.
    pub short_per_root: Sourced<Time>,
    /// Longest distance of a short seek, in cylinders.
    pub short_cylinders: Sourced<u32>,
    /// Constant part of a long seek.
    pub long_base: Sourced<Time>,
    /// Part of a long seek per cylinder of distance.
    pub long_per_cylinder: Sourced<Time>,
}

/// Controller in the drive.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Controller {
    /// Time from the arrival of a read command to the first movement for it.
    pub read_overhead: Sourced<Time>,
    /// Time from the arrival of a write command until its data may cross the bus.
    pub write_overhead: Sourced<Time>,
    /// Size of the read-ahead cache.
    pub cache: Sourced<Bytes>,
    /// Additional time before the mechanics start a write that does not continue the previous one. Default: 0.
    pub exposed_per_repositioned_write: Option<Sourced<Time>>,
}

/// Track, written `cylinder:head`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TrackAddress {
    /// Cylinder, counted from 0 at the outer edge.
    pub cylinder: u32,
    /// Head, counted from 0.
    pub head: u32,
}

/// Consecutive tracks that hold data, written `"first-last"`, as in `"1:4-646:3"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First track of the region.
    pub first: TrackAddress,
    /// Last track of the region, inclusive.
    pub last: TrackAddress,
}

/// Disk without mechanics.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamingDisk {
    #[serde(rename = "kind")]
    _kind: IgnoredAny,
    /// Name of the disk.
    pub name: String,
    /// Bytes in a sector.
    pub sector_bytes: Sourced<Bytes>,
    /// Size of the disk.
    pub capacity: Sourced<Bytes>,
    /// Rate at which data are read from the medium; also the rate of writes unless `write_rate` is set.
    pub rate: Sourced<Rate>,
    /// Rate at which data are written to the medium. Default: `rate`.
    pub write_rate: Option<Sourced<Rate>>,
    /// Time charged to an access that does not continue the previous one.
    pub positioning: Sourced<Time>,
    /// Time from the arrival of any command to the first work on it. Default: 0.
    pub command_overhead: Option<Sourced<Time>>,
    /// Maximum number of bytes that are read ahead before the next command arrives. Default: all bytes that this
    /// command requests.
    pub read_ahead: Option<Sourced<Bytes>>,
}

/// Disk without cache or buffer. Every access seeks, waits for the rotation and transfers, even one that continues the
/// previous access: the usual model of analyses.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrawnDisk {
    #[serde(rename = "kind")]
    _kind: IgnoredAny,
    /// Name of the disk.
    pub name: String,
    /// Bytes in a sector.
    pub sector_bytes: Sourced<Bytes>,
    /// Bytes in a cylinder, the range that the arm reaches without a seek.
    pub cylinder_bytes: Sourced<Bytes>,
    /// Number of cylinders.
    pub cylinders: Sourced<u32>,
    /// Cylinder of the arm when the machine starts.
    pub initial_cylinder: Sourced<u32>,
    /// Time to move the arm by one cylinder. Moving it by *n* cylinders takes *n* times as long.
    pub seek_per_cylinder: Sourced<Time>,
    /// Mean rotational latency. The latency of an access is uniformly distributed from 0 to twice this time.
    pub mean_latency: Sourced<Time>,
    /// Rate of reads from the medium and of writes to it.
    pub rate: Sourced<Rate>,
}

impl Description for DiskDescription {
    const KIND: &'static str = "disk";

    const BUILT_IN: &'static [(&'static str, &'static str)] = &[
        ("hp97560", include_str!("../../../../machines/disks/hp97560.toml")),
        ("st318416w", include_str!("../../../../machines/disks/st318416w.toml")),
        ("streaming-20", include_str!("../../../../machines/disks/streaming-20.toml")),
        ("drawn-3600", include_str!("../../../../machines/disks/drawn-3600.toml")),
        ("drawn-14400", include_str!("../../../../machines/disks/drawn-14400.toml")),
        ("flash-qlc", include_str!("../../../../machines/disks/flash-qlc.toml")),
    ];

    fn decode(text: &str) -> Result<Self, toml::de::Error> {
        // Not an enum tagged by `kind`: serde would then lose the position of every value in the text, which error
        // messages need.
        let Kinded { kind } = toml::from_str(text)?;
        match kind.get_ref() {
            Kind::Mechanical => toml::from_str(text).map(Box::new).map(Self::Mechanical),
            Kind::Streaming => toml::from_str(text).map(Box::new).map(Self::Streaming),
            Kind::Drawn => toml::from_str(text).map(Box::new).map(Self::Drawn),
        }
    }

    fn checked(self, _: &Path) -> Result<Self, Misfit> {
        match &self {
            Self::Mechanical(disk) => disk.check()?,
            Self::Streaming(disk) => disk.check()?,
            Self::Drawn(disk) => disk.check()?,
        }
        Ok(self)
    }
}

impl DiskDescription {
    /// Returns the name of the disk.
    pub fn name(&self) -> &str {
        match self {
            Self::Mechanical(disk) => &disk.name,
            Self::Streaming(disk) => &disk.name,
            Self::Drawn(disk) => &disk.name,
        }
    }
}

/// The key that all disks have. The other keys are read when the kind is known.
#[derive(Deserialize)]
struct Kinded {
    kind: Spanned<Kind>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Mechanical,
    Streaming,
    Drawn,
}

impl WrittenAsText for TrackAddress {
    const EXPECTED: &'static str = "a track such as \"646:3\" (cylinder:head)";

    fn parse(text: &str) -> Option<Self> {
        let (cylinder, head) = text.split_once(':')?;
        Some(TrackAddress { cylinder: cylinder.parse().ok()?, head: head.parse().ok()? })
    }
}

impl WrittenAsText for Region {
    const EXPECTED: &'static str = "tracks such as \"1:4-646:3\" (first cylinder:head-last cylinder:head)";

    fn parse(text: &str) -> Option<Self> {
        let (first, last) = text.split_once('-')?;
        Some(Region { first: TrackAddress::parse(first)?, last: TrackAddress::parse(last)? })
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Region { first, last } = self;
        write!(f, "{}:{}-{}:{}", first.cylinder, first.head, last.cylinder, last.head)
    }
}

impl<'de> Deserialize<'de> for Region {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        quantity::deserialize(deserializer)
    }
}

impl MechanicalDisk {
    /// Returns the time of one sector under the head, rounded down, so that checks against this time are safe.
    fn sector_time(&self) -> Duration {
        let period = self.rotation.value.period().as_nanos();
        Duration::from_nanos(period / u64::from(self.sectors_per_track.value))
    }

    fn check(&self) -> Result<(), Misfit> {
        self.check_geometry()?;
        self.check_regions()?;
        self.check_times()?;
        self.check_skews()
    }

    fn check_geometry(&self) -> Result<(), Misfit> {
        check_sector(&self.sector_bytes)?;
        check_count(&self.sectors_per_track)?;
        check_count(&self.tracks_per_cylinder)?;
        check_count(&self.cylinders)?;
        let sectors = [&self.cylinders, &self.tracks_per_cylinder, &self.sectors_per_track];
        let bytes = sectors
            .iter()
            .try_fold(self.sector_bytes.value.0, |bytes, count| bytes.checked_mul(count.value.into()));
        self.cylinders.ensure(bytes.is_some_and(|bytes| bytes <= DISK_BYTES_MAX), || {
            format!("expected a disk of at most {DISK_BYTES_MAX} bytes")
        })?;
        check_below(&self.initial_cylinder, &self.cylinders, "cylinders")
    }

    fn check_regions(&self) -> Result<(), Misfit> {
        let regions = &self.regions;
        regions.ensure(!regions.value.is_empty(), || "expected at least one region".to_owned())?;
        let mut before: Option<Region> = None;
        for &region in &regions.value {
            let Region { first, last } = region;
            regions.ensure(first <= last, || format!("expected {region} to start before its end"))?;
            regions.ensure([first, last].iter().all(|&track| self.has(track)), || {
                format!("expected {region} to lie within the cylinders and heads of the disk")
            })?;
            regions.ensure(before.is_none_or(|before| before.last < first), || {
                format!("expected {region} to start after the end of the previous region")
            })?;
            before = Some(region);
        }
        Ok(())
    }

    fn has(&self, track: TrackAddress) -> bool {
        track.cylinder < self.cylinders.value && track.head < self.tracks_per_cylinder.value
    }

    fn check_times(&self) -> Result<(), Misfit> {
        let Seek { short_base, short_per_root, long_base, long_per_cylinder, .. } = &self.seek;
        let Controller { read_overhead, write_overhead, exposed_per_repositioned_write, .. } =
            &self.controller;
        for time in [short_base, short_per_root, long_base, long_per_cylinder, &self.head_switch]
            .into_iter()
            .chain([read_overhead, write_overhead])
            .chain(exposed_per_repositioned_write)
        {
            check_time(time)?;
        }
        self.rotation.ensure(!self.sector_time().is_zero(), || {
            "expected a rotation slow enough that each sector takes at least a nanosecond".to_owned()
        })
    }

    fn check_skews(&self) -> Result<(), Misfit> {
        check_below(&self.track_skew, &self.sectors_per_track, "sectors per track")?;
        check_below(&self.cylinder_skew, &self.sectors_per_track, "sectors per track")?;
        let track_skew = self.sector_time() * self.track_skew.value.into();
        self.head_switch.ensure(self.head_switch.value.0 <= track_skew, || {
            format!(
                "expected a head switch within the track skew of {track_skew}; \
                 beyond it every track of a sequential access would cost a rotation"
            )
        })?;
        let cylinder_skew = self.sector_time() * self.cylinder_skew.value.into();
        self.cylinder_skew.ensure(self.seek.to_next_cylinder() <= cylinder_skew, || {
            format!(
                "expected a cylinder skew of at least the {} of a seek to the next cylinder",
                self.seek.to_next_cylinder()
            )
        })
    }
}

impl Seek {
    fn to_next_cylinder(&self) -> Duration {
        if self.short_cylinders.value >= 1 {
            self.short_base.value.0 + self.short_per_root.value.0
        } else {
            self.long_base.value.0 + self.long_per_cylinder.value.0
        }
    }
}

impl StreamingDisk {
    /// Returns the rate of writes to the medium in bytes per second.
    pub fn written_per_second(&self) -> u64 {
        self.write_rate.as_ref().unwrap_or(&self.rate).value.0
    }

    fn check(&self) -> Result<(), Misfit> {
        check_sector(&self.sector_bytes)?;
        let Bytes(capacity) = self.capacity.value;
        self.capacity.ensure((self.sector_bytes.value.0..=DISK_BYTES_MAX).contains(&capacity), || {
            format!("expected a capacity from one sector to {DISK_BYTES_MAX} bytes")
        })?;
        check_time(&self.positioning)?;
        if let Some(ahead) = &self.read_ahead {
            ahead.ensure((0..=capacity).contains(&ahead.value.0), || {
                "expected a read-ahead of at most the capacity of the disk".into()
            })?;
        }
        self.command_overhead.as_ref().map_or(Ok(()), check_time)
    }
}

impl DrawnDisk {
    fn check(&self) -> Result<(), Misfit> {
        check_sector(&self.sector_bytes)?;
        check_count(&self.cylinders)?;
        let (Bytes(sector), Bytes(cylinder)) = (self.sector_bytes.value, self.cylinder_bytes.value);
        self.cylinder_bytes.ensure(cylinder > 0 && cylinder.is_multiple_of(sector), || {
            format!("expected a cylinder of whole sectors of {sector} bytes")
        })?;
        let bytes = cylinder.checked_mul(self.cylinders.value.into());
        self.cylinders.ensure(bytes.is_some_and(|bytes| bytes <= DISK_BYTES_MAX), || {
            format!("expected a disk of at most {DISK_BYTES_MAX} bytes")
        })?;
        check_below(&self.initial_cylinder, &self.cylinders, "cylinders")?;
        check_time(&self.mean_latency)?;
        check_time(&self.seek_per_cylinder)
    }
}

/// Limit of disk sizes. Keeps the arithmetic on sectors and bytes of any disk well within 64 bits.
const DISK_BYTES_MAX: u64 = 1 << 56;

/// Limit of each time in a disk description. Keeps the arithmetic on times of any disk within 64 bits.
const TIME_MAX: Duration = Duration::from_secs(100);

const SECTOR_BYTES_MAX: u64 = 1 << 20;
const COUNT_MAX: u32 = 1 << 20;

fn check_sector(sector: &Sourced<Bytes>) -> Result<(), Misfit> {
    sector.ensure((1..=SECTOR_BYTES_MAX).contains(&sector.value.0), || {
        format!("expected a sector of 1 to {SECTOR_BYTES_MAX} bytes")
    })
}

fn check_count(count: &Sourced<u32>) -> Result<(), Misfit> {
    count.ensure((1..=COUNT_MAX).contains(&count.value), || format!("expected a count from 1 to {COUNT_MAX}"))
}

fn check_time(time: &Sourced<Time>) -> Result<(), Misfit> {
    time.ensure(time.value.0 <= TIME_MAX, || format!("expected a time of at most {TIME_MAX}"))
}

fn check_below(count: &Sourced<u32>, limit: &Sourced<u32>, of: &str) -> Result<(), Misfit> {
    count.ensure(count.value < limit.value, || format!("expected less than the {} {of}", limit.value))
}
