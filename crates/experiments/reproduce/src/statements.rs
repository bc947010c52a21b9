//! A report's statements about its figures, compared with the results.
//!
//! A statement sets bounds for a measure over some cells of a figure. Statements are read from CSV with the columns of
//! [`Row`]. An empty field selects all cells.

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
    /// Identifier of the statement.
    id: String,
    /// Section of the report.
    section: String,
    /// Text of the statement, one line.
    statement: String,
    /// Number of the figure of the cells.
    figure: u32,
    /// Layout of the cells.
    layout: String,
    /// Variant of the cells.
    variant: String,
    /// Variant with which each cell is compared, for measures that compare.
    against: String,
    /// Patterns of the cells, separated by blanks. After `!`, all patterns except these.
    patterns: String,
    /// Record sizes of the cells in bytes, separated by blanks.
    records: String,
    /// Name of the measure.
    measure: String,
    /// Lower and upper bound of the measure.
    least: f64,
    most: f64,
    /// Published value.
    published: f64,
}

/// Measure over the cells of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    /// Number of flushes of each cell.
    Flushes,
    /// Number of flushes because of a full directory, of each cell.
    DirectoryFlushes,
    /// Median of the throughputs, in MiB/s.
    Median,
    /// Largest throughput, in MiB/s.
    Largest,
    /// Largest coefficient of variation.
    LargestVariation,
    /// Throughput divided by that of the other variant, of each cell.
    Ratio,
    /// Largest slowdown relative to the other variant, in percent.
    MostSlower,
}

/// Agreement of the results with a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Within the bounds.
    Met,
    /// Outside the bounds by less than half their distance, or by less than a tenth of the published value.
    Near,
    /// Further outside.
    Missed,
}

impl Standing {
    /// Compares the range of found values with the bounds. If a bound is infinite, only a value within a tenth of the
    /// published value counts as near.
    pub(crate) fn of(found: (f64, f64), (least, most): (f64, f64), published: f64) -> Standing {
        let distance = most - least;
        let near = if distance.is_finite() { distance / 2.0 } else { 0.0 }.max(published.abs() / 10.0);
        match (least - found.0).max(found.1 - most) {
            outside if outside <= 0.0 => Standing::Met,
            outside if outside < near => Standing::Near,
            _ => Standing::Missed,
        }
    }

    /// Returns the name.
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
    /// Reads the statements of a file. The error names the file and the line.
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

    /// Returns the smallest and the largest measured value; `None` unless every selected cell has trials.
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

/// True if two results have the same settings except for their variants.
fn is_same_place(one: &CellResult<'_>, other: &CellResult<'_>) -> bool {
    let place = |result: &CellResult<'_>| {
        let case = &result.cell.case;
        (case.pattern, case.problem.record_bytes, case.layout.to_string(), result.cell.varied.clone())
    };
    one.plan.published == other.plan.published && place(one) == place(other)
}

/// Returns the statements whose cells have all run, compared with the results.
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
        title: "Statements of the report, compared with the results".to_owned(),
        notes: vec![
            "Met: within the bounds. Near: outside by less than half the distance of the bounds, or by less than a tenth of \
             the published value."
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
    fn statements_are_met_near_or_missed() {
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
    fn invalid_statements_are_rejected_with_the_reason() {
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
