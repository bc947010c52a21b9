//! Thread Log Viewer: shows traces in a browser.
//!
//! A [`trace::Timeline`] is encoded in columns, which are compact and fast to decode. The page that shows them is one
//! file with its script and style. Either a [`Server`] on loopback serves page and columns, and checks if the files
//! have grown, or [one file](self_contained) without dependencies contains both.
//!
//! ```text
//!   Files ── trace::TraceReader ── Timeline ── columns() ──┬── Server ── browser
//!                                                          └── self_contained() ── file
//! ```
//!
//! - `columns.rs`: the columns, and their format
//! - `files.rs`: the files: their paths are given once, and the files are read again after they have grown
//! - `server.rs`: the server, over the crate `web`
//! - `page.html`: the page, built from `page/` by `make page`; `make lint` checks that it is up to date
//!
//! `page/src` contains the display and the computations of the page: start with `main.ts`.

mod columns;
mod files;
mod server;

use std::io::Write;

use base64::prelude::{BASE64_STANDARD, Engine};
use flate2::{Compression, write::GzEncoder};

pub use files::{FileColumns, FileError, TraceFiles};
pub use server::{ServeError, Server};

/// The page without columns. It requests the columns from its server.
const PAGE: &str = include_str!("page.html");

/// Element of the page that holds the columns.
const PLACE: &str = r#"<script type="application/octet-stream" id="columns">"#;

/// Initial view of the page: the part of its address after `#`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirstLook {
    /// All files on one clock.
    #[default]
    Together,
    /// A separate time line for each file, from the begin of the file.
    Beside,
}

impl FirstLook {
    /// Returns the view as the fragment of an address, after `#`.
    pub fn fragment(self) -> &'static str {
        match self {
            FirstLook::Together => "",
            FirstLook::Beside => "beside=yes",
        }
    }
}

/// Returns the page with these columns, as one file that loads no other files.
pub fn self_contained(columns: &[u8], look: FirstLook) -> String {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(columns).expect("memory takes everything");
    let packed = packed.finish().expect("memory takes everything");
    let (before, after) = PAGE.split_once(PLACE).expect("the page has a place for columns");
    // The columns are base64 only, so no name in a trace can close the element.
    let place = format!(r#"{} data-look="{}">"#, PLACE.trim_end_matches('>'), look.fragment());
    [before, &place, &BASE64_STANDARD.encode(packed), after].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_loads_no_other_files_and_runs_only_its_own_script() {
        assert!(PAGE.contains("default-src 'none'; script-src 'sha256-"));
        assert!(!PAGE.contains("src=\"http") && !PAGE.contains("href=\"http") && !PAGE.contains("unsafe-"));
        assert_eq!(PAGE.matches(PLACE).count(), 1);
    }

    #[test]
    fn a_self_contained_page_contains_the_columns() {
        let page = self_contained(b"some columns", FirstLook::Beside);
        let text = page.split_once(r#"id="columns" data-look="beside=yes">"#).unwrap().1;
        let text = text.split_once('<').unwrap().0;
        let packed = BASE64_STANDARD.decode(text).unwrap();
        let mut unpacked = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&packed[..]), &mut unpacked).unwrap();
        assert_eq!(unpacked, b"some columns");
    }
}
