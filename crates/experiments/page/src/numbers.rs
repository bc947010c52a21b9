//! A page of figures, bars and plain tables.

use maud::{Markup, html};

use statistics::Sample;

use crate::boxes::{BoxDrawing, ShadedTable, boxes, shaded};
use crate::chart::{Figure, figure};
use crate::document;
use crate::measurand::{Measurand, half_width, number};
use crate::plot::{Plot, plot};

/// A page of figures and tables.
#[derive(Clone, Debug)]
pub struct NumbersPage {
    /// Title, one line.
    pub title: String,
    /// Paragraphs of the introduction.
    pub lead: Vec<String>,
    /// Contents of the page, in order.
    pub parts: Vec<NumbersPart>,
}

/// A part of a page.
#[derive(Clone, Debug)]
pub enum NumbersPart {
    /// A figure.
    Figure(Figure),
    /// Bars.
    Bars(NumbersBars),
    /// A table.
    Table(NumbersTable),
    /// A plot.
    Plot(Plot),
    /// Boxes in columns.
    Boxes(BoxDrawing),
    /// Numbers in shades.
    Shaded(ShadedTable),
}

/// A bar chart: each value has a name, a bar whose length starts at zero, and its number.
#[derive(Clone, Debug)]
pub struct NumbersBars {
    /// Title, one line.
    pub title: String,
    /// Measured quantity.
    pub measurand: Measurand,
    /// Name and sample of each bar, from top to bottom.
    pub bars: Vec<(String, Sample)>,
    /// Number of bars in a group. Each bar of a group has a different colour.
    pub together: usize,
}

/// A table of text.
#[derive(Clone, Debug)]
pub struct NumbersTable {
    /// Title, one line.
    pub title: String,
    /// Paragraphs above the table that explain how to read it.
    pub notes: Vec<String>,
    /// Titles of the columns.
    pub head: Vec<String>,
    /// Number of text columns, from the left; the other columns are numbers.
    pub text_columns: usize,
    /// Rows of the table.
    pub rows: Vec<Vec<String>>,
}

impl NumbersPage {
    /// Returns the page as the text of an HTML file without external references.
    pub fn html(&self) -> String {
        let body = html! {
            header {
                h1 { (self.title) }
                @for paragraph in &self.lead { p { (paragraph) } }
            }
            main {
                @for part in &self.parts {
                    @match part {
                        NumbersPart::Figure(drawn) => (figure(drawn)),
                        NumbersPart::Bars(bars) => (bars.section()),
                        NumbersPart::Table(table) => (table.section()),
                        NumbersPart::Plot(drawn) => (plot(drawn)),
                        NumbersPart::Boxes(drawing) => (boxes(drawing)),
                        NumbersPart::Shaded(table) => (shaded(table)),
                    }
                }
            }
        };
        document(&self.title, &body)
    }
}

/// Width of the largest bar and height of each bar, in pixels.
const BAR_WIDTH: f64 = 400.0;
const BAR_HEIGHT: f64 = 14.0;

/// Number of colours in `style.css`.
const COLOURS: usize = 8;

impl NumbersBars {
    fn section(&self) -> Markup {
        let margin = |sample: &Sample| sample.half_width().unwrap_or(0.0);
        let ends = self.bars.iter().map(|(_, sample)| sample.mean() + margin(sample));
        let most = ends.fold(f64::MIN_POSITIVE, f64::max);
        let along = |value: f64| format!("{:.1}", (BAR_WIDTH * value / most).max(0.0));
        let bar = |place: usize, sample: &Sample| {
            let (mean, margin) = (sample.mean(), margin(sample));
            let colour = format!("colour-{}", place % self.together.max(1) % COLOURS);
            html! {
                svg viewBox=(format!("0 0 {BAR_WIDTH} {BAR_HEIGHT}")) aria-hidden="true" {
                    rect class=(colour) width=(along(mean)) height=(BAR_HEIGHT) {}
                    line.axis x1=(along(mean - margin)) x2=(along(mean + margin)) y1="7" y2="7" {}
                }
            }
        };
        html! {
            section {
                h2 { (self.title) }
                div.scroll tabindex="0" role="region" aria-label=(self.title) {
                    table.bars {
                        thead { tr { th.text scope="col" {} th {} th scope="col" { (self.measurand.unit) } th scope="col" { "\u{b1}" } } }
                        tbody {
                            @for (place, (name, sample)) in self.bars.iter().enumerate() {
                                tr {
                                    th.text scope="row" { (name) }
                                    td { (bar(place, sample)) }
                                    td { (number(sample.mean())) }
                                    td { (half_width(sample.half_width())) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

impl NumbersTable {
    fn section(&self) -> Markup {
        let class = |column: usize| (column < self.text_columns).then_some("text");
        html! {
            section {
                h2 { (self.title) }
                @for note in &self.notes { p { (note) } }
                div.scroll tabindex="0" role="region" aria-label=(self.title) {
                    table {
                        thead {
                            tr {
                                @for (column, head) in self.head.iter().enumerate() {
                                    th scope="col" class=[class(column)] { (head) }
                                }
                            }
                        }
                        tbody {
                            @for row in &self.rows {
                                tr {
                                    @for (column, cell) in row.iter().enumerate() {
                                        td class=[class(column)] { (cell) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_contains_all_its_texts_escaped() {
        let table = NumbersTable {
            title: "a table".into(),
            notes: vec!["a note".into()],
            head: vec!["<head>".into(), "number".into()],
            text_columns: 1,
            rows: vec![vec!["4 & 5".into(), "6".into()]],
        };
        let page = NumbersPage {
            title: "t".into(),
            lead: vec!["first".into()],
            parts: vec![NumbersPart::Table(table)],
        };
        let html = page.html();
        for text in [
            "<h1>t</h1>",
            "first",
            "a table",
            "a note",
            "&lt;head&gt;",
            "<td class=\"text\">4 &amp; 5</td><td>6</td>",
        ] {
            assert!(html.contains(text), "{text} in {html}");
        }
    }
}
