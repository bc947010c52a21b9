//! Converts the number of a sector to its position: cylinder, head and angle.
//!
//! Sectors are numbered through the regions of the disk, track by track. Sector 0 of a track is offset by the track
//! skew against sector 0 of the previous track, or by the cylinder skew if the track is the first of a cylinder. During
//! the skew the head moves to the track. The angle depends only on the physical position: the skews of spare tracks
//! between two regions count too.

use description::MechanicalDisk;

/// Track under the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeadTrack {
    pub(crate) cylinder: u64,
    pub(crate) head: u64,
}

/// Position of one sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SectorPlace {
    pub(crate) track: HeadTrack,
    /// Angle in sectors from the start of the rotation, skews included.
    pub(crate) angle: u64,
    /// Number of sectors from this sector to the end of its track, including this sector.
    pub(crate) left: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    pub(crate) sectors_per_track: u64,
    tracks_per_cylinder: u64,
    track_skew: u64,
    cylinder_skew: u64,
    regions: Vec<Region>,
    pub(crate) capacity: u64,
}

/// Contiguous tracks, counted over the whole disk, and the number of their first sector.
#[derive(Clone, Debug)]
struct Region {
    first_sector: u64,
    first_track: u64,
}

impl Geometry {
    pub(crate) fn new(disk: &MechanicalDisk) -> Self {
        let sectors_per_track = u64::from(disk.sectors_per_track.value);
        let tracks_per_cylinder = u64::from(disk.tracks_per_cylinder.value);
        let track_number = |track: description::TrackAddress| {
            u64::from(track.cylinder) * tracks_per_cylinder + u64::from(track.head)
        };
        let mut capacity = 0;
        let mut regions = Vec::new();
        for region in &disk.regions.value {
            let (first, last) = (track_number(region.first), track_number(region.last));
            regions.push(Region { first_sector: capacity, first_track: first });
            capacity += (last - first + 1) * sectors_per_track;
        }
        Geometry {
            sectors_per_track,
            tracks_per_cylinder,
            track_skew: disk.track_skew.value.into(),
            cylinder_skew: disk.cylinder_skew.value.into(),
            regions,
            capacity,
        }
    }

    pub(crate) fn place(&self, sector: u64) -> SectorPlace {
        debug_assert!(sector < self.capacity);
        let after = self.regions.partition_point(|region| region.first_sector <= sector);
        let region = &self.regions[after - 1];
        let in_region = sector - region.first_sector;
        let on_track = in_region % self.sectors_per_track;
        let number = region.first_track + in_region / self.sectors_per_track;
        let track = HeadTrack {
            cylinder: number / self.tracks_per_cylinder,
            head: number % self.tracks_per_cylinder,
        };
        SectorPlace {
            track,
            angle: (self.skew(track) + on_track) % self.sectors_per_track,
            left: self.sectors_per_track - on_track,
        }
    }

    pub(crate) fn is_track_start(&self, sector: u64) -> bool {
        sector < self.capacity && self.place(sector).left == self.sectors_per_track
    }

    /// Returns the number of sectors by which all skews before this track add up.
    fn skew(&self, track: HeadTrack) -> u64 {
        let per_cylinder = (self.tracks_per_cylinder - 1) * self.track_skew + self.cylinder_skew;
        track.cylinder * per_cylinder + track.head * self.track_skew
    }
}
