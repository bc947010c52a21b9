//! Value with its source: the reason to trust a number in a description.

use std::ops::Range;

use serde::de::{Deserialize, Deserializer, Error as _};
use toml::Spanned;

use crate::Misfit;

/// Value, its source, and, if it was fitted, the results it was fitted to.
///
/// Written as an inline table: `{ value = "2.2 ms", source = "Ruemmler & Wilkes 1994" }`, optionally with `calibrated =
/// "the published cells it was fitted to"`. Cells used for calibration are no evidence for the model.
#[derive(Clone, Debug)]
pub struct Sourced<T> {
    /// Value itself.
    pub value: T,
    /// Paper, data sheet, measurement with date, or the word "assumption" with a reason; never empty.
    pub source: String,
    /// Published results this value was fitted to, if any.
    pub calibrated: Option<String>,
    span: Range<usize>,
}

impl<T> Sourced<T> {
    /// Creates a value that was not read from a text, for descriptions made by programs.
    pub fn new(value: T, source: &str) -> Self {
        Sourced { value, source: source.to_owned(), calibrated: None, span: 0..0 }
    }

    /// Returns the error that this value is impossible, to be reported with its line.
    pub fn misfit(&self, message: impl Into<String>) -> Misfit {
        Misfit { span: self.span.clone(), message: message.into() }
    }

    /// Fails with `message` unless `holds`.
    pub fn ensure(&self, holds: bool, message: impl FnOnce() -> String) -> Result<(), Misfit> {
        if holds { Ok(()) } else { Err(self.misfit(message())) }
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table { value = ..., source = \"...\" }")]
struct Written<T> {
    value: Spanned<T>,
    source: String,
    calibrated: Option<String>,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Sourced<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Written { value, source, calibrated } = Written::deserialize(deserializer)?;
        if source.trim().is_empty() {
            return Err(D::Error::custom("the source is empty: expected the source of the value"));
        }
        Ok(Sourced { span: value.span(), value: value.into_inner(), source, calibrated })
    }
}
