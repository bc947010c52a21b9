//! A page of figures and plain tables, for results that no report has printed.

use maud::{Markup, html};

use super::{chart, page};
use crate::results::Figure;

/// Figures and tables on a page of their own.
#[derive(Clone, Debug)]
pub struct NumbersPage {
    /// What it is about, in a line.
    pub title: String,
    /// What a reader has to know first: paragraphs.
    pub lead: Vec<String>,
    /// What it shows, in order.
    pub parts: Vec<NumbersPart>,
}

/// A part of a page.
#[derive(Clone, Debug)]
pub enum NumbersPart {
    /// A figure.
    Figure(Figure),
    /// A table.
    Table(NumbersTable),
}

/// A table of text.
#[derive(Clone, Debug)]
pub struct NumbersTable {
    /// What it is about, in a line.
    pub title: String,
    /// What helps to read it: paragraphs above it.
    pub notes: Vec<String>,
    /// The heads of its columns.
    pub head: Vec<String>,
    /// How many of the columns, from the left, are text; the others are numbers.
    pub text_columns: usize,
    /// Its rows.
    pub rows: Vec<Vec<String>>,
}

impl NumbersPage {
    /// The page, as the text of an HTML file that needs no other.
    pub fn html(&self) -> String {
        let body = html! {
            header {
                h1 { (self.title) }
                @for paragraph in &self.lead { p { (paragraph) } }
            }
            main {
                @for part in &self.parts {
                    @match part {
                        NumbersPart::Figure(figure) => (chart::figure(figure)),
                        NumbersPart::Table(table) => (table.section()),
                    }
                }
            }
        };
        page(&self.title, &body)
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
    fn a_page_has_all_it_was_given_escaped() {
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
