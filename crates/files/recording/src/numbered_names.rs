//! Numbers of names.

use std::collections::BTreeMap;

/// Number of names that can be found by their address in memory. With more names, lookups take longer.
const SEEN: usize = 256;

/// Numbers names from 0 on, in the order of their first use.
///
/// Nearly all names are literals that are used repeatedly, so a name is first looked up by its address in memory.
pub(crate) struct NumberedNames {
    numbers: BTreeMap<&'static str, u32>,
    seen: [(&'static str, u32); SEEN],
}

impl Default for NumberedNames {
    fn default() -> Self {
        NumberedNames { numbers: BTreeMap::new(), seen: [("", u32::MAX); SEEN] }
    }
}

impl NumberedNames {
    /// Returns the number of a name, and true if the name is new.
    #[inline]
    pub(crate) fn number(&mut self, name: &'static str) -> (u32, bool) {
        let place = (name.as_ptr().addr() >> 2) % SEEN;
        let (seen, number) = self.seen[place];
        if std::ptr::eq(seen, name) && number != u32::MAX {
            return (number, false);
        }
        let next = self.numbers.len() as u32;
        let number = *self.numbers.entry(name).or_insert(next);
        self.seen[place] = (name, number);
        (number, number == next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_at_different_addresses_have_one_number() {
        let mut names = NumberedNames::default();
        let many: Vec<&'static str> = (0..1000).map(|number| &*format!("name {number}").leak()).collect();
        for round in 0..2 {
            for (number, name) in (0..).zip(&many) {
                assert_eq!(names.number(name), (number, round == 0));
                assert_eq!(names.number((*name).to_owned().leak()), (number, false));
            }
        }
        assert_eq!(names.number(""), (1000, true));
        assert_eq!(names.number(""), (1000, false));
    }
}
