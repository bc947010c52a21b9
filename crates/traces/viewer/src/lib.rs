//! Thread Log Viewer: shows traces in a browser.
//!
//! A [`trace::Timeline`] becomes columns, which are compact and quick to read; the page that shows them is one file
//! with its script and style. Either a [`Server`] on loopback serves both, and checks if the files have grown, or both
//! are [one file](self_contained) without dependencies.
//!
//! ```text
//!   Files ── trace::TraceReader ── Timeline ── columns() ──┬── Server ── browser
//!                                                          └── self_contained() ── file
//! ```
//!
//! - `columns.rs`: the columns, and their format
//! - `files.rs`: files that are named once, and read again after they have grown
//! - `server.rs`: the server, over the crate `web`
//! - `page.html`: the page, built from `page/` by `make page`; `make lint` checks that it is up to date
//!
//! `page/src` describes the page's display and computations: start with `main.ts`.

mod columns;
mod files;
mod server;

use std::io::Write;

use base64::prelude::{BASE64_STANDARD, Engine};
use flate2::{Compression, write::GzEncoder};

pub use files::{FileColumns, FileError, TraceFiles};
pub use server::{ServeError, Server};

/// The page without columns, which it requests from its server.
const PAGE: &str = include_str!("page.html");

/// Element of the page that holds the columns.
const PLACE: &str = r#"<script type="application/octet-stream" id="columns">"#;

/// Initial view of the page: the part of its address after `#`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirstLook {
    /// All files on one clock.
    #[default]
    Together,
    /// A separate time line for each file, from its begin.
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

/// Returns the page with its columns, as one file that loads nothing else.
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
    fn the_page_fetches_nothing_and_runs_no_foreign_script() {
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
