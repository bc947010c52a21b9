//! A table of the report: a row for each pattern, with simulated and published values, coloured by error.

use maud::{Markup, html};

use super::number;
use crate::agreement::{self, BOUNDS, Compared, Ratio};
use crate::published::{PublishedCell, PublishedTables};
use crate::results::{ReportTable, TableCell};
use plan::Quantity;

/// Returns the legend of colours and fonts.
pub(super) fn legend() -> Markup {
    html! {
        p.legend {
            b { "here" } " is the simulated value, " b { "report" } " the published one. Error of the simulated value: "
            span.error.low-3 { "more than 10\u{a0}% lower" } " "
            span.error.low-2 { "up to 10\u{a0}% lower" } " "
            span.error.low-1 { "up to 5\u{a0}% lower" } " "
            span.error.close { "within 2\u{a0}%" } " "
            span.error.high-1 { "up to 5\u{a0}% higher" } " "
            span.error.high-2 { "up to 10\u{a0}% higher" } " "
            span.error.high-3 { "more than 10\u{a0}% higher" } "."
        }
        p.legend {
            "A ratio is relative to the first variant: " b { "bold*" } " if the two differ significantly at 95\u{a0}%, "
            i { "italics" } " if they do not, plain if this is unknown. "
            span.wrong { "\u{21c4} on the wrong side" }
            " marks a ratio that differs from 1 by more than 5\u{a0}% in the report, and that is not on the same side of 1 in the simulation. "
            "Published values are rounded to 0.1 MiB/s: for a value of 0.8, an error of 6\u{a0}% may be due to rounding."
        }
    }
}

/// Returns the CSS class of an error, which depends on its sign and on its range among the bounds.
pub(super) fn class(error: f64) -> &'static str {
    let beyond = BOUNDS.iter().filter(|&&bound| error.abs() > bound).count();
    match (beyond, error < 0.0) {
        (0, _) => "error close",
        (1, true) => "error low-1",
        (2, true) => "error low-2",
        (_, true) => "error low-3",
        (1, false) => "error high-1",
        (2, false) => "error high-2",
        (_, false) => "error high-3",
    }
}

/// Returns the table, with heading, caption and a head of three rows.
pub(super) fn table(table: &ReportTable, published: &PublishedTables) -> Markup {
    let sizes = table.record_sizes();
    let known = published.table(table.number).is_some();
    let one_record_size = |pattern, size| groups(table, published, known, pattern, size);
    html! {
        article id={ "table-" (table.number) } {
            h3 {
                "Table " (table.number) ": " (table.title)
                @if !known { " " span.predicted { "predicted" } }
            }
            div.scroll tabindex="0" role="region" aria-label={ "Table " (table.number) } {
                table.results {
                    caption { span { (caption(table, known, published)) } }
                    (head(table, &sizes, known))
                    tbody {
                        @for pattern in table.patterns() {
                            tr {
                                th scope="row" { (pattern) }
                                @for &size in &sizes { (one_record_size(pattern, size)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn caption(table: &ReportTable, known: bool, published: &PublishedTables) -> Markup {
    let compared = agreement::compared([table], published);
    let what = match table.quantity {
        Quantity::Throughput => "Throughput in MiB/s",
        Quantity::Movements => "Disk movements",
        Quantity::Time => "Time in s",
    };
    html! {
        (what) ", " code { (table.system) } ", " (table.layout) " layout. "
        @if known {
            @if let Some(errors) = agreement::errors(&compared) {
                "Median error " (number::size(errors.median)) "; "
                (number::share(errors.within[2])) " of " (number::count(errors.cells, "cell")) " within 10\u{a0}%."
            }
        } @else {
            "Predicted: the published values are not known to this project. "
            "\u{b1} is the 95\u{a0}% confidence interval of the mean."
        }
    }
}

/// Returns the titles of the columns for one variant, and for one ratio.
fn columns(known: bool) -> (&'static [&'static str], &'static [&'static str]) {
    if known { (&["here", "report", "error"], &["here", "report"]) } else { (&["here", "\u{b1}"], &["here"]) }
}

fn head(table: &ReportTable, sizes: &[u64], known: bool) -> Markup {
    let variants = table.variants();
    let (of_variant, of_ratio) = columns(known);
    let later = variants.len().saturating_sub(1);
    let width = variants.len() * of_variant.len() + later * of_ratio.len();
    html! {
        thead {
            tr {
                th scope="col" rowspan="3" { "Pattern" }
                @for size in sizes {
                    th.group scope="colgroup" colspan=(width) { (size) "-byte records" }
                }
            }
            tr {
                @for _ in sizes {
                    @for (place, variant) in variants.iter().enumerate() {
                        th.group[place == 0].part[place > 0] scope="colgroup" colspan=(of_variant.len()) { (variant) }
                    }
                    @for variant in variants.iter().skip(1) {
                        th.part scope="colgroup" colspan=(of_ratio.len()) { (variant) " / " (variants[0]) }
                    }
                }
            }
            tr {
                @for _ in sizes {
                    @for place in 0..variants.len() {
                        @for (column, name) in of_variant.iter().enumerate() {
                            th.group[place + column == 0].part[place > 0 && column == 0] scope="col" { (name) }
                        }
                    }
                    @for _ in 0..later {
                        @for (column, name) in of_ratio.iter().enumerate() {
                            th.part[column == 0] scope="col" { (name) }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the cells of one pattern and record size: those of all variants, then those of all ratios.
fn groups(table: &ReportTable, published: &PublishedTables, known: bool, pattern: &str, size: u64) -> Markup {
    let cells: Vec<Option<&TableCell>> =
        table.variants().iter().map(|variant| table.cell(variant, pattern, size)).collect();
    let (of_variant, of_ratio) = columns(known);
    html! {
        @for (place, cell) in cells.iter().enumerate() {
            @match cell {
                None => (absent(of_variant.len(), place == 0)),
                Some(cell) if known => {
                    (compared(table, cell, published.table(table.number).and_then(|t| t.cell(&cell.place())), place == 0))
                }
                Some(cell) => (predicted(table, cell, place == 0)),
            }
        }
        @for cell in cells.iter().skip(1) {
            @match cell.and_then(|cell| agreement::ratio(table, cell, published)) {
                None => (absent(of_ratio.len(), false)),
                Some(ratio) => (ratio_cells(&ratio, known)),
            }
        }
    }
}

/// Returns placeholders for a combination that the table does not have.
fn absent(columns: usize, first: bool) -> Markup {
    html! { td.absent.group[first].part[!first] colspan=(columns) { "\u{2013}" } }
}

fn compared(table: &ReportTable, cell: &TableCell, published: Option<PublishedCell>, first: bool) -> Markup {
    let Some(published) = published else {
        return html! { (simulated(table, cell, first)) td {} td {} };
    };
    let error = Compared { table, cell, published }.error();
    html! {
        (simulated(table, cell, first))
        td.published { (number::published(table.quantity, published.value)) }
        td class=(class(error)) { (number::error(error)) }
    }
}

fn predicted(table: &ReportTable, cell: &TableCell, first: bool) -> Markup {
    html! {
        (simulated(table, cell, first))
        td.published { (number::half_width(table.quantity, cell.sample.half_width())) }
    }
}

fn simulated(table: &ReportTable, cell: &TableCell, first: bool) -> Markup {
    let sample = &cell.sample;
    let (trials, cv) = (number::count(sample.count(), "trial"), number::size(sample.cv()));
    let width = number::half_width(table.quantity, sample.half_width());
    let more = format!("95\u{a0}%: \u{b1} {width} {}; cv {cv}; {trials}", number::unit(table.quantity));
    html! {
        td.group[first].part[!first] title=(more) { (number::value(table.quantity, sample.mean())) }
    }
}

fn ratio_cells(ratio: &Ratio<'_>, known: bool) -> Markup {
    let simulated = format!("{:.2}", ratio.simulated());
    html! {
        td.part {
            @if ratio.on_wrong_side() { span.wrong title="on the wrong side of 1" { "\u{21c4}" } " " }
            (marked(&simulated, ratio.differs()))
        }
        @if known {
            td.published {
                @if let Some(published) = ratio.published {
                    (marked(&format!("{published:.2}"), ratio.marked))
                }
            }
        }
    }
}

/// Returns a ratio in a font that shows its significance.
fn marked(ratio: &str, significant: Option<bool>) -> Markup {
    html! {
        @match significant {
            None => (ratio),
            Some(true) => b title="significant at 95\u{a0}%" { (ratio) "*" },
            Some(false) => i title="not significant at 95\u{a0}%" { (ratio) },
        }
    }
}
