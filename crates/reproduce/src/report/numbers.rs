//! A page of figures and plain tables, for results that no report has printed.

use maud::html;

use super::{chart, page};
use crate::results::Figure;

/// Figures and tables on a page of their own.
#[derive(Clone, Debug)]
pub struct NumbersPage {
    /// What it is about, in a line.
    pub title: String,
    /// What a reader has to know first: paragraphs.
    pub lead: Vec<String>,
    /// The figures, in order.
    pub figures: Vec<Figure>,
    /// The tables, in order; they stand below the figures.
    pub tables: Vec<NumbersTable>,
}

/// A table of text.
#[derive(Clone, Debug)]
pub struct NumbersTable {
    /// What it is about, in a line.
    pub title: String,
    /// The heads of its columns.
    pub head: Vec<String>,
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
                @for figure in &self.figures { (chart::figure(figure)) }
                @for table in &self.tables {
                    section {
                        h2 { (table.title) }
                        div.scroll tabindex="0" role="region" aria-label=(table.title) {
                            table {
                                thead { tr { @for head in &table.head { th scope="col" { (head) } } } }
                                tbody {
                                    @for row in &table.rows { tr { @for cell in row { td { (cell) } } } }
                                }
                            }
                        }
                    }
                }
            }
        };
        page(&self.title, &body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_all_it_was_given_escaped() {
        let table = NumbersTable {
            title: "a table".into(),
            head: vec!["<head>".into()],
            rows: vec![vec!["4 & 5".into()]],
        };
        let page = NumbersPage {
            title: "t".into(),
            lead: vec!["first".into()],
            figures: vec![],
            tables: vec![table],
        };
        let html = page.html();
        for text in ["<h1>t</h1>", "first", "a table", "&lt;head&gt;", "4 &amp; 5"] {
            assert!(html.contains(text), "{text} in {html}");
        }
    }
}
