//! Pages: one file of HTML each, with charts and tables, to be read without a network.
//!
//! No scripts, fonts or images come from elsewhere; the style is in `style.css`. Nothing is said by colour alone: every
//! coloured cell has its number, and below each chart stand its numbers. The same values give the same page, byte by
//! byte.
//!
//! - [`NumbersPage`] in `numbers.rs`: a page of figures, bars and plain tables
//! - [`Figure`] in `chart.rs`: curves with their confidence intervals, as SVG
//! - [`Plot`] in `plot.rs`: any quantity against any other, every trial a dot
//! - [`BoxDrawing`], [`ShadedTable`] in `boxes.rs`: what lies where, numbers in shades
//! - [`Measurand`] in `measurand.rs`: what they measure
//! - [`document`]: the frame around a page of another make
//!
//! What is not here, on purpose: what the numbers mean.

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

/// How a page looks.
const STYLE: &str = include_str!("style.css");

/// A whole page, as the text of an HTML file that needs no other.
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
