//! The summary: agreement and differences, in sentences and in three short tables.

use maud::{Markup, html};

use super::table::class;
use super::{Report, number};
use crate::agreement::{self, Compared, Errors, Ratio};
use crate::results::ReportTable;
use plan::Quantity;

/// Maximum number of listed cells with large errors.
const WORST: usize = 20;

/// Titles of text columns; all other columns are numbers.
const TEXTS: [&str; 5] = ["What", "variant", "pattern", "ratio", "marked there"];

/// Returns the section of the summary.
pub(super) fn summary(report: &Report<'_>) -> Markup {
    let compared = agreement::compared(report.tables, report.published);
    let ratios = agreement::ratios(report.tables, report.published);
    html! {
        section #summary {
            h2 { "What agrees, and what does not" }
            @if compared.is_empty() {
                p { "None of these tables has published values in this project: all values are predictions." }
            } @else {
                (in_words(&compared, &ratios))
                (by_table(report))
                (worst(compared))
                (wrong_sides(&ratios))
            }
            (predictions(report))
        }
    }
}

fn in_words(compared: &[Compared<'_>], ratios: &[Ratio<'_>]) -> Markup {
    let throughput = agreement::of_quantity(compared, Quantity::Throughput);
    let movements = agreement::of_quantity(compared, Quantity::Movements);
    html! {
        ul {
            @if let Some(errors) = agreement::errors(&throughput) { li { (errors_in_words(&errors, "throughput cell")) } }
            @if let Some(errors) = agreement::errors(&movements) {
                li { (errors_in_words(&errors, "count of disk movements")) }
            }
            li { (sides_in_words(ratios)) }
            @let (agree, marked) = significance(ratios);
            @if marked > 0 {
                li {
                    "The report says of " (number::count(marked, "ratio")) " whether it is significant; in "
                    strong { (agree) } " of them (" (number::share(agree as f64 / marked as f64))
                    ") the simulation says the same."
                }
            }
        }
    }
}

fn errors_in_words(errors: &Errors, what: &str) -> Markup {
    let Errors { cells, median, largest, within: [two, five, ten] } = *errors;
    let what = match what.split_once(' ') {
        Some(("count", rest)) => format!("{cells} counts {rest}"),
        _ => number::count(cells, what),
    };
    html! {
        "Of " (what) " with a published value, half are within "
        strong { (number::size(median)) } " of it. "
        (number::share(two)) " are within 2\u{a0}%, " (number::share(five)) " within 5\u{a0}%, and "
        strong { (number::share(ten)) } " within 10\u{a0}%. The largest error is " (number::error(largest)) "."
    }
}

fn sides_in_words(ratios: &[Ratio<'_>]) -> Markup {
    let with_side = |marked: Option<bool>| {
        let sided: Vec<_> =
            ratios.iter().filter(|ratio| ratio.has_side() && ratio.marked == marked).collect();
        let wrong = sided.iter().filter(|ratio| ratio.on_wrong_side()).count();
        (sided.len() - wrong, sided.len())
    };
    let (significant, unmarked) = (with_side(Some(true)), with_side(None));
    html! {
        "Of " (number::count(significant.1, "ratio")) " that the report marks as significant and that are further than "
        "5\u{a0}% from 1 however their values were rounded, " strong { (significant.0) } " are on the same side of 1 here."
        @if unmarked.1 > 0 {
            " Of " (unmarked.1) " more as far from 1, in tables without marks of significance, " (unmarked.0) " are."
        }
    }
}

/// Returns the number of ratios whose simulated significance agrees with the report's mark, and the number of ratios
/// that the report marks.
fn significance(ratios: &[Ratio<'_>]) -> (usize, usize) {
    let both = ratios.iter().filter_map(|ratio| ratio.marked.zip(ratio.differs()));
    both.fold((0, 0), |(agree, all), (marked, differs)| (agree + usize::from(marked == differs), all + 1))
}

fn by_table(report: &Report<'_>) -> Markup {
    let row = |table: &ReportTable| {
        let compared = agreement::compared([table], report.published);
        let Some(errors) = agreement::errors(&compared) else { return html! {} };
        let ratios = agreement::ratios([table], report.published);
        let wrong = ratios.iter().filter(|ratio| ratio.on_wrong_side()).count();
        let sided = ratios.iter().filter(|ratio| ratio.has_side()).count();
        html! {
            tr {
                th scope="row" { a href={ "#table-" (table.number) } { (table.number) } }
                td.text.title { (table.title) }
                td { (errors.cells) }
                td { (number::size(errors.median)) }
                @for share in errors.within { td { (number::share(share)) } }
                td class=(class(errors.largest)) { (number::error(errors.largest)) }
                td { (wrong) " of " (sided) }
            }
        }
    };
    html! {
        div.scroll tabindex="0" role="region" aria-label="Agreement by table" {
            table {
                caption { "Agreement, table by table" }
                thead {
                    tr {
                        @for head in [
                            "Table", "What", "cells", "median error", "within 2\u{a0}%", "within 5\u{a0}%", "within 10\u{a0}%",
                            "largest error", "ratios on the wrong side",
                        ] { th.text[TEXTS.contains(&head)] scope="col" { (head) } }
                    }
                }
                tbody { @for table in report.tables { (row(table)) } }
            }
        }
    }
}

fn worst(mut compared: Vec<Compared<'_>>) -> Markup {
    compared.sort_by(|one, other| other.error().abs().total_cmp(&one.error().abs()));
    let bound = agreement::BOUNDS[2];
    let beyond = compared.iter().filter(|cell| cell.error().abs() > bound).count();
    compared.truncate(WORST);
    html! {
        div.scroll tabindex="0" role="region" aria-label="The largest errors" {
            table {
                caption {
                    "The " (compared.len()) " largest errors; beyond 10\u{a0}% are " (number::count(beyond, "cell")) " in all"
                }
                thead {
                    tr {
                        @for head in ["Table", "variant", "pattern", "record", "here", "report", "error"] {
                            th.text[TEXTS.contains(&head)] scope="col" { (head) }
                        }
                    }
                }
                tbody { @for cell in &compared { (worst_row(cell)) } }
            }
        }
    }
}

fn worst_row(compared: &Compared<'_>) -> Markup {
    let Compared { table, cell, published } = compared;
    html! {
        tr {
            th scope="row" { a href={ "#table-" (table.number) } { (table.number) } }
            td.text { (cell.variant) }
            td.text { (cell.pattern) }
            td { (cell.record_bytes) " B" }
            td { (number::value(table.quantity, cell.sample.mean())) }
            td.published { (number::published(table.quantity, published.value)) }
            td class=(class(compared.error())) { (number::error(compared.error())) }
        }
    }
}

fn wrong_sides(ratios: &[Ratio<'_>]) -> Markup {
    let wrong: Vec<_> = ratios.iter().filter(|ratio| ratio.on_wrong_side()).collect();
    let significance = |marked| match marked {
        None => "\u{2013}",
        Some(true) => "significant",
        Some(false) => "not significant",
    };
    html! {
        @if wrong.is_empty() {
            p {
                "No ratio that is further than 5\u{a0}% from 1 in the report, however its values were rounded, is on the "
                "other side of 1 here."
            }
        } @else {
            div.scroll tabindex="0" role="region" aria-label="Ratios on the wrong side of 1" {
                table {
                    caption { "Ratios on the wrong side of 1" }
                    thead {
                        tr {
                            @for head in ["Table", "ratio", "pattern", "record", "here", "report", "marked there"] {
                                th.text[TEXTS.contains(&head)] scope="col" { (head) }
                            }
                        }
                    }
                    tbody {
                        @for ratio in wrong {
                            tr {
                                th scope="row" { a href={ "#table-" (ratio.table.number) } { (ratio.table.number) } }
                                td.text { (ratio.cell.variant) " / " (ratio.base.variant) }
                                td.text { (ratio.cell.pattern) }
                                td { (ratio.cell.record_bytes) " B" }
                                td { (format!("{:.2}", ratio.simulated())) }
                                td.published { @if let Some(published) = ratio.published { (format!("{published:.2}")) } }
                                td.text { (significance(ratio.marked)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn predictions(report: &Report<'_>) -> Markup {
    let predicted = report.tables.iter().filter(|table| report.published.table(table.number).is_none());
    let numbers: Vec<String> = predicted.map(|table| table.number.to_string()).collect();
    html! {
        @if !numbers.is_empty() {
            p {
                "Predicted, without published values to compare with: "
                (if numbers.len() == 1 { "table " } else { "tables " }) (numbers.join(", ")) "."
            }
        }
    }
}
