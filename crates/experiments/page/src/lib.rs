//! Self-contained HTML pages with charts and tables, readable without a network.
//!
//! A page loads no scripts, fonts or images; its style is in `style.css`. Colour is never the only carrier of
//! information: every coloured cell contains its number, and every chart has a table of its numbers below it. Equal
//! input produces an identical page, byte by byte.
//!
//! - [`NumbersPage`] in `numbers.rs`: a page of figures, bars and plain tables.
//! - [`Figure`] in `chart.rs`: curves with their confidence intervals, as SVG.
//! - [`Plot`] in `plot.rs`: any quantity over any other, with a dot for each trial.
//! - [`BoxDrawing`], [`ShadedTable`] in `boxes.rs`: boxes in columns, and tables of shaded numbers.
//! - [`Measurand`] in `measurand.rs`: the measured quantity and its unit.
//! - [`document`]: the HTML frame of any page.
//!
//! This crate does not interpret the numbers.

mod boxes;
mod chart;
mod measurand;
mod numbers;
mod plot;

use maud::{DOCTYPE, Markup, PreEscaped, html};

pub use boxes::{BoxDrawing, DrawnBox, ShadedCell, ShadedTable};
pub use chart::{Curve, Figure, figure};
pub use measurand::{Measurand, half_width, number};
pub use numbers::{NumbersBars, NumbersPage, NumbersPart, NumbersTable};
pub use plot::{Plot, PlotSeries};

/// Style sheet that every page contains.
const STYLE: &str = include_str!("style.css");

/// Returns a complete page as the text of an HTML file without external references.
pub fn document(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { (body) }
        }
    };
    page.into_string()
}
