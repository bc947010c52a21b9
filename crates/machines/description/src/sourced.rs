//! Value with its source, so that a reader can judge the number in a description.

use std::ops::Range;

use serde::de::{Deserialize, Deserializer, Error as _};
use toml::Spanned;

use crate::Misfit;

/// Value with its source, and with the published results that it was fitted to, if any.
///
/// Written as an inline table: `{ value = "2.2 ms", source = "Ruemmler & Wilkes 1994" }`, optionally with `calibrated =
/// "the published cells that it was fitted to"`. Agreement with cells used for calibration is no evidence for the
/// model.
#[derive(Clone, Debug)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// Paper, data sheet, measurement with date, or the word "assumption" with a reason; never empty.
    pub source: String,
    /// Published results that this value was fitted to, if any.
    pub calibrated: Option<String>,
    span: Range<usize>,
}

impl<T> Sourced<T> {
    /// Creates a value for a description made by a program, instead of read from a text.
    pub fn new(value: T, source: &str) -> Self {
        Sourced { value, source: source.to_owned(), calibrated: None, span: 0..0 }
    }

    /// Returns the error that this value is impossible. The error contains the position of the value in the text.
    pub fn misfit(&self, message: impl Into<String>) -> Misfit {
        Misfit { span: self.span.clone(), message: message.into() }
    }

    /// Fails with `message` if `holds` is false.
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
            return Err(D::Error::custom("the source is empty: expected where the value comes from"));
        }
        Ok(Sourced { span: value.span(), value: value.into_inner(), source, calibrated })
    }
}
