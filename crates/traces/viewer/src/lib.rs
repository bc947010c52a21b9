//! The Thread Log Viewer: traces, looked at in a browser.
//!
//! A [`trace::Timeline`] becomes columns, which are short and quickly read; the page that shows them is one file with
//! its script and style. Either a [`Server`] on loopback hands out both, and looks whether the files have grown, or
//! both are [one file](self_contained) that needs nothing else.
//!
//! ```text
//!   Files ── trace::TraceReader ── Timeline ── columns() ──┬── Server ── browser
//!                                                          └── self_contained() ── file
//! ```
//!
//! - `columns.rs`: the columns, and their format
//! - `files.rs`: files that are named once, and read again when they have grown
//! - `server.rs`: the server, over the crate `web`
//! - `page.html`: the page, built of `page/` by `make page`; a check of `make lint` is that it is what that gives
//!
//! What is shown and computed there is told in `page/src`: `main.ts` first.

mod columns;
mod files;
mod server;

use std::io::Write;

use base64::prelude::{BASE64_STANDARD, Engine};
use flate2::{Compression, write::GzEncoder};

pub use files::{FileColumns, FileError, TraceFiles};
pub use server::{ServeError, Server};

/// The page, without columns: it asks where it came from for them.
const PAGE: &str = include_str!("page.html");

/// Where columns have their place in the page.
const PLACE: &str = r#"<script type="application/octet-stream" id="columns">"#;

/// What the page shows first: the part of its address after `#`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirstLook {
    /// All files on one clock.
    #[default]
    Together,
    /// A time line for each file, each from its own beginning.
    Beside,
}

impl FirstLook {
    /// As it stands after `#` in an address.
    pub fn fragment(self) -> &'static str {
        match self {
            FirstLook::Together => "",
            FirstLook::Beside => "beside=yes",
        }
    }
}

/// The page with its columns, as one file that loads nothing.
pub fn self_contained(columns: &[u8], look: FirstLook) -> String {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(columns).expect("memory takes everything");
    let packed = packed.finish().expect("memory takes everything");
    let (before, after) = PAGE.split_once(PLACE).expect("the page has a place for columns");
    // The only characters are those of base64: no name in a trace can end the element.
    let place = format!(r#"{} data-look="{}">"#, PLACE.trim_end_matches('>'), look.fragment());
    [before, &place, &BASE64_STANDARD.encode(packed), after].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_fetches_nothing_and_runs_nothing_of_others() {
        assert!(PAGE.contains("default-src 'none'; script-src 'sha256-"));
        assert!(!PAGE.contains("src=\"http") && !PAGE.contains("href=\"http") && !PAGE.contains("unsafe-"));
        assert_eq!(PAGE.matches(PLACE).count(), 1);
    }

    #[test]
    fn one_file_holds_the_columns() {
        let page = self_contained(b"some columns", FirstLook::Beside);
        let text = page.split_once(r#"id="columns" data-look="beside=yes">"#).unwrap().1;
        let text = text.split_once('<').unwrap().0;
        let packed = BASE64_STANDARD.decode(text).unwrap();
        let mut unpacked = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&packed[..]), &mut unpacked).unwrap();
        assert_eq!(unpacked, b"some columns");
    }
}
