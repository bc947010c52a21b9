//! What a report says of its figures in words, beside what came out.
//!
//! A statement is about a number that is measured over some cells of a figure, and says within which bounds it is. They
//! are read from CSV with the columns of [`Row`]; what is empty there stands for all.

use page::NumbersTable;
use plan::CellResult;
use serde::Deserialize;
use statistics::median;

/// A statement of a report.
#[derive(Clone, Debug)]
pub struct Statement {
    row: Row,
    measure: Measure,
}

/// A row of the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// What it is called.
    id: String,
    /// Where it stands in the report.
    section: String,
    /// What is said, in a line.
    statement: String,
    /// The figure whose cells it is about.
    figure: u32,
    /// Their layout.
    layout: String,
    /// Their variant.
    variant: String,
    /// The variant that each is compared with, for measures that compare.
    against: String,
    /// Their patterns, with blanks between them; after `!`, all but these.
    patterns: String,
    /// The sizes of their records in bytes, with blanks between them.
    records: String,
    /// What is measured over them.
    measure: String,
    /// The bounds.
    least: f64,
    most: f64,
    /// What the report has.
    published: f64,
}

/// What is measured over the cells of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    /// The flushes of each.
    Flushes,
    /// The flushes of each because a directory was full.
    DirectoryFlushes,
    /// The median of their throughputs, in MiB/s.
    Median,
    /// The largest throughput, in MiB/s.
    Largest,
    /// The largest coefficient of variation.
    LargestVariation,
    /// How many times as fast each is as with the other variant.
    Ratio,
    /// By how much, in percent, the one is slower than with the other variant that is most.
    MostSlower,
}

/// How what came out agrees with a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is within the bounds.
    Met,
    /// It is outside by less than half of their distance, or than a tenth of what was published.
    Near,
    /// It is further outside.
    Missed,
}

impl Standing {
    /// How what was found, from its least to its most, stands to bounds, of which one may be infinite: then only a
    /// tenth of what was published is near.
    pub(crate) fn of(found: (f64, f64), (least, most): (f64, f64), published: f64) -> Standing {
        let distance = most - least;
        let near = if distance.is_finite() { distance / 2.0 } else { 0.0 }.max(published.abs() / 10.0);
        match (least - found.0).max(found.1 - most) {
            outside if outside <= 0.0 => Standing::Met,
            outside if outside < near => Standing::Near,
            _ => Standing::Missed,
        }
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Standing::Met => "met",
            Standing::Near => "near",
            Standing::Missed => "missed",
        }
    }
}

impl Measure {
    fn named(name: &str) -> Option<Measure> {
        Some(match name {
            "flushes" => Measure::Flushes,
            "directory flushes" => Measure::DirectoryFlushes,
            "median" => Measure::Median,
            "largest" => Measure::Largest,
            "largest variation" => Measure::LargestVariation,
            "ratio" => Measure::Ratio,
            "most slower" => Measure::MostSlower,
            _ => return None,
        })
    }

    fn compares(self) -> bool {
        matches!(self, Measure::Ratio | Measure::MostSlower)
    }
}

impl Statement {
    /// Reads the statements of a file; the error names it and the line.
    pub fn read(file: &str, text: &str) -> Result<Vec<Statement>, String> {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let mut statements = Vec::new();
        for row in reader.deserialize::<Row>() {
            let row = row.map_err(|error| format!("{file}: {error}"))?;
            let complain = |what: &str| format!("{file}: {}: {what}", row.id);
            let measure = Measure::named(&row.measure).ok_or_else(|| complain("no such measure"))?;
            if measure.compares() == row.against.is_empty() {
                return Err(complain("a measure that compares, and no other, needs a variant in `against`"));
            }
            if row.least.partial_cmp(&row.most).is_none_or(std::cmp::Ordering::is_gt) {
                return Err(complain("expected bounds, the least first"));
            }
            statements.push(Statement { row, measure });
        }
        Ok(statements)
    }

    /// The least and the most of what is measured; none if there is not a trial of every cell it is about.
    fn measured(&self, results: &[CellResult<'_>]) -> Option<(f64, f64)> {
        let cells: Vec<&CellResult<'_>> = results.iter().filter(|result| self.is_about(result)).collect();
        let throughput = |result: &&CellResult<'_>| result.throughput().map(|sample| sample.mean());
        let values: Option<Vec<f64>> = match self.measure {
            Measure::Flushes => cells
                .iter()
                .map(|result| result.mean(|measurement| Some(measurement.flushes?.flushes as f64)))
                .collect(),
            Measure::DirectoryFlushes => cells
                .iter()
                .map(|result| result.mean(|measurement| Some(measurement.flushes?.directory_flushes as f64)))
                .collect(),
            Measure::Median | Measure::Largest => cells.iter().map(throughput).collect(),
            Measure::LargestVariation => {
                cells.iter().map(|result| result.throughput().map(|sample| sample.cv())).collect()
            }
            Measure::Ratio | Measure::MostSlower => {
                let ratio = |result: &&CellResult<'_>| {
                    let other = results.iter().find(|other| {
                        other.cell.variant == self.row.against && is_same_place(other, result)
                    })?;
                    Some(throughput(result)? / throughput(&other)?)
                };
                cells.iter().map(ratio).collect()
            }
        };
        let mut values = values.filter(|values| !values.is_empty())?;
        values.sort_by(f64::total_cmp);
        let (least, most) = (values[0], values[values.len() - 1]);
        Some(match self.measure {
            Measure::Flushes | Measure::DirectoryFlushes | Measure::Ratio => (least, most),
            Measure::Median => {
                let middle = median(&values)?;
                (middle, middle)
            }
            Measure::Largest | Measure::LargestVariation => (most, most),
            Measure::MostSlower => {
                let slower = (100.0 * (1.0 - least)).max(0.0);
                (slower, slower)
            }
        })
    }

    fn is_about(&self, result: &CellResult<'_>) -> bool {
        let (row, cell) = (&self.row, result.cell);
        let named = |list: &str, name: &str| list.split_whitespace().any(|one| one == name);
        let figure = result.plan.published.as_ref().map(|published| published.number);
        let pattern = cell.case.pattern.to_string();
        figure == Some(row.figure)
            && (row.layout.is_empty() || row.layout == cell.case.layout.to_string())
            && (row.variant.is_empty() || row.variant == cell.variant)
            && match row.patterns.strip_prefix('!') {
                Some(others) => !named(others, &pattern),
                None => row.patterns.is_empty() || named(&row.patterns, &pattern),
            }
            && (row.records.is_empty() || named(&row.records, &cell.case.problem.record_bytes.to_string()))
    }

    fn standing(&self, found: (f64, f64)) -> Standing {
        let row = &self.row;
        Standing::of(found, (row.least, row.most), row.published)
    }
}

/// Whether two results differ in their variants at most.
fn is_same_place(one: &CellResult<'_>, other: &CellResult<'_>) -> bool {
    let place = |result: &CellResult<'_>| {
        let case = &result.cell.case;
        (case.pattern, case.problem.record_bytes, case.layout.to_string(), result.cell.varied.clone())
    };
    one.plan.published == other.plan.published && place(one) == place(other)
}

/// The statements beside what came out, of those whose cells have all been run.
pub fn statements_table(statements: &[Statement], results: &[CellResult<'_>]) -> NumbersTable {
    let shown = |value: f64| {
        let text = format!("{value:.2}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    let range = |(least, most): (f64, f64)| match (shown(least), shown(most)) {
        (least, most) if least == most => least,
        (least, most) => format!("{least} to {most}"),
    };
    let row = |statement: &Statement| {
        let (row, found) = (&statement.row, statement.measured(results)?);
        let standing = statement.standing(found).name();
        let words = [row.section.clone(), row.statement.clone(), standing.to_owned()];
        let numbers = [shown(row.published), range((row.least, row.most)), range(found)];
        Some(words.into_iter().chain(numbers).collect())
    };
    NumbersTable {
        title: "What the report says, and what came out".to_owned(),
        notes: vec![
            "Met: within the bounds. Near: outside by less than half of their distance, or a tenth of what was published."
                .to_owned(),
        ],
        head: ["section", "statement", "", "published", "bounds", "found"].map(str::to_owned).into(),
        text_columns: 3,
        rows: statements.iter().filter_map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str =
        "id,section,statement,figure,layout,variant,against,patterns,records,measure,least,most,published\n";

    fn statement(row: &str) -> Result<Statement, String> {
        Statement::read("s.csv", &format!("{HEAD}{row}\n")).map(|mut all| all.remove(0))
    }

    #[test]
    fn what_is_outside_is_near_or_missed() {
        let one = statement("a,5.1,about 30,5,,enwrich,,,,median,26,34,30").expect("it makes sense");
        for (found, standing) in
            [(26.0, Standing::Met), (34.0, Standing::Met), (37.9, Standing::Near), (38.1, Standing::Missed)]
        {
            assert_eq!(one.standing((found, found)), standing, "{found}");
        }
        let exact = statement("b,5.1,72,5,,enwrich,,wnn,8192,flushes,72,72,72").expect("it makes sense");
        assert_eq!(exact.standing((72.0, 72.0)), Standing::Met);
        assert_eq!(exact.standing((72.0, 73.0)), Standing::Near);
        assert_eq!(exact.standing((60.0, 72.0)), Standing::Missed);
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for (row, why) in [
            ("a,5,x,5,,,,,,mode,1,2,1", "a: no such measure"),
            ("a,5,x,5,,,,,,ratio,1,2,1", "needs a variant"),
            ("a,5,x,5,,,tc,,,median,1,2,1", "needs a variant"),
            ("a,5,x,5,,,,,,median,3,2,1", "expected bounds"),
            ("a,5,x,five,,,,,,median,1,2,1", "line: 2"),
        ] {
            let error = statement(row).expect_err("refused");
            assert!(error.starts_with("s.csv: ") && error.contains(why), "{error}");
        }
    }
}
