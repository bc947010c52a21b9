//! TOML values with their places in the file, so that every error can name a line.

use std::fmt::Display;
use std::ops::{Range, RangeInclusive};
use std::str::FromStr;

use description::{Bytes, Misfit, WrittenAsText};
use experiment::Given;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value and its place.
#[derive(Clone, Copy)]
pub(crate) struct TomlValue<'a>(pub(crate) &'a Spanned<DeValue<'a>>);

impl<'a> TomlValue<'a> {
    pub(crate) fn span(&self) -> Range<usize> {
        self.0.span()
    }

    /// Returns an error at the place of this value.
    pub(crate) fn misfit(&self, message: impl Into<String>) -> Misfit {
        Misfit { span: self.span(), message: message.into() }
    }

    fn expected(&self, what: &str) -> Misfit {
        self.misfit(format!("expected {what}, not {}", self.shown()))
    }

    /// Returns the value in the form of an error message.
    fn shown(&self) -> String {
        match self.0.get_ref() {
            DeValue::String(text) => format!("{text:?}"),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.to_string(),
            DeValue::Boolean(flag) => flag.to_string(),
            DeValue::Datetime(time) => time.to_string(),
            DeValue::Array(_) => "a list".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
        }
    }

    pub(crate) fn text(&self) -> Result<&'a str, Misfit> {
        match self.0.get_ref() {
            DeValue::String(text) if !text.trim().is_empty() => Ok(text),
            DeValue::String(_) => Err(self.misfit("it is empty: expected a text")),
            _ => Err(self.expected("a text in quotes")),
        }
    }

    /// Returns the value if it is a whole number and not negative.
    fn whole(&self) -> Option<u64> {
        let number = self.0.get_ref().as_integer()?;
        u64::from_str_radix(number.as_str().trim_start_matches('+'), number.radix()).ok()
    }

    pub(crate) fn integer(&self, allowed: RangeInclusive<u64>) -> Result<u64, Misfit> {
        let number = self.whole();
        let (first, last) = (allowed.start(), allowed.end());
        number
            .filter(|number| allowed.contains(number))
            .ok_or_else(|| self.expected(&format!("a whole number from {first} to {last}")))
    }

    /// Returns a number of bytes within this range: a text such as `"64 KiB"`, or a plain number.
    pub(crate) fn bytes(&self, allowed: RangeInclusive<u64>) -> Result<u64, Misfit> {
        let bytes = match self.0.get_ref() {
            DeValue::Integer(_) => self.integer(0..=u64::MAX)?,
            DeValue::String(text) => Bytes::parse(text).ok_or_else(|| self.expected(Bytes::EXPECTED))?.0,
            _ => return Err(self.expected(Bytes::EXPECTED)),
        };
        let (first, last) = (allowed.start(), allowed.end());
        let fits = allowed.contains(&bytes);
        fits.then_some(bytes).ok_or_else(|| self.expected(&format!("from {first} to {last} bytes")))
    }

    /// Returns the value in the form in which a field accepts it.
    pub(crate) fn given(&self) -> Given<'a> {
        match self.0.get_ref() {
            DeValue::String(text) => Given::Text(text),
            DeValue::Boolean(flag) => Given::Flag(*flag),
            DeValue::Integer(_) => self.whole().map_or_else(|| Given::Other(self.shown()), Given::Whole),
            _ => Given::Other(self.shown()),
        }
    }

    /// Parses a text value.
    pub(crate) fn parsed<T: FromStr<Err: Display>>(&self) -> Result<T, Misfit> {
        self.text()?.parse().map_err(|error| self.misfit(format!("{error}")))
    }

    /// Returns the elements of a list. Fails if the list is empty.
    pub(crate) fn list(&self, of: &str) -> Result<Vec<TomlValue<'a>>, Misfit> {
        let list = self.0.get_ref().as_array().ok_or_else(|| self.expected(&format!("a list of {of}")))?;
        if list.is_empty() {
            return Err(self.misfit(format!("the list is empty: expected {of}, at least one")));
        }
        Ok(list.iter().map(TomlValue).collect())
    }

    pub(crate) fn table(&self) -> Result<&'a DeTable<'a>, Misfit> {
        self.0.get_ref().as_table().ok_or_else(|| self.expected("a table"))
    }

    /// Returns the value in the form that a machine's description needs in order to replace a value.
    pub(crate) fn literal(&self) -> Result<String, Misfit> {
        match self.0.get_ref() {
            DeValue::String(text) if !text.contains(['\n', '"', '\\']) => Ok(text.to_string()),
            DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) => Ok(self.shown()),
            _ => Err(self.expected("a number, true, false or a text without quotes")),
        }
    }
}

/// Returns the entries of a table in the order of the file, each with the place of its key.
pub(crate) fn entries<'a>(table: &'a DeTable<'a>) -> Vec<(&'a str, Range<usize>, TomlValue<'a>)> {
    let entry = |(key, value): (&'a Spanned<_>, &'a Spanned<_>)| {
        let name: &std::borrow::Cow<'a, str> = key.get_ref();
        (&**name, key.span(), TomlValue(value))
    };
    let mut entries: Vec<_> = table.iter().map(entry).collect();
    entries.sort_by_key(|(_, key, _)| key.start);
    entries
}

/// Returns the error for an unknown key.
pub(crate) fn unknown_key(key: &str, span: Range<usize>, known: &[&str]) -> Misfit {
    Misfit { span, message: description::unknown("key", key, known) }
}
