//! Drawings of boxes in columns, and tables of shaded numbers.

use maud::{Markup, html};

/// A drawing of boxes that are stacked in columns.
#[derive(Clone, Debug)]
pub struct BoxDrawing {
    /// Title, one line.
    pub title: String,
    /// Note that explains how to read the drawing.
    pub note: String,
    /// Columns from left to right: the name of each, and its boxes from top to bottom.
    pub columns: Vec<(String, Vec<DrawnBox>)>,
}

/// A box of a drawing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawnBox {
    /// Text in the box.
    pub label: String,
    /// Number of the group, which selects the colour.
    pub group: usize,
    /// True if the box is filled.
    pub is_filled: bool,
}

/// A table of one quantity for each pair of row and column, in shades.
#[derive(Clone, Debug)]
pub struct ShadedTable {
    /// Title, one line.
    pub title: String,
    /// Note that explains how to read the table.
    pub note: String,
    /// Text of the corner cell, which names the rows and the columns.
    pub corner: String,
    /// Titles of the columns.
    pub columns: Vec<String>,
    /// Rows: the name of each, and its cells.
    pub rows: Vec<(String, Vec<Option<ShadedCell>>)>,
}

/// A shaded number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShadedCell {
    /// Number in the cell. The shade grows from 1 (no shade) to 2.5 (darkest).
    pub value: f64,
    /// True if the cell is marked.
    pub is_marked: bool,
}

/// Number of colours in `style.css`.
const COLOURS: usize = 8;

const COLUMN_WIDTH: f64 = 110.0;
const BOX_HEIGHT: f64 = 18.0;
const HEAD: f64 = 24.0;

pub(crate) fn boxes(drawing: &BoxDrawing) -> Markup {
    let most = drawing.columns.iter().map(|(_, boxes)| boxes.len()).max().unwrap_or(0);
    let (width, height) =
        (COLUMN_WIDTH * drawing.columns.len() as f64, HEAD + (BOX_HEIGHT + 3.0) * most as f64);
    html! {
        figure {
            h3 { (drawing.title) }
            svg.boxes viewBox=(format!("0 0 {width} {height}")) width=(width) role="img" aria-label=(drawing.title) {
                @for (column, (name, boxes)) in drawing.columns.iter().enumerate() {
                    @let x = COLUMN_WIDTH * column as f64;
                    text.tick x=(x + 4.0) y="15" { (name) }
                    @for (row, one) in boxes.iter().enumerate() {
                        @let y = HEAD + (BOX_HEIGHT + 3.0) * row as f64;
                        g class={ "line colour-" (one.group % COLOURS) } {
                            rect.box.filled[one.is_filled] x=(x + 2.0) y=(y) width=(COLUMN_WIDTH - 8.0) height=(BOX_HEIGHT) {}
                        }
                        text.tick x=(x + 8.0) y=(y + 13.0) { (one.label) }
                    }
                }
            }
            figcaption { (drawing.note) }
        }
    }
}

pub(crate) fn shaded(table: &ShadedTable) -> Markup {
    let class = |cell: &ShadedCell| match cell.value {
        value if value < 1.1 => "close",
        value if value < 1.5 => "low-1",
        value if value < 2.5 => "low-2",
        _ => "low-3",
    };
    html! {
        section {
            h2 { (table.title) }
            p { (table.note) }
            div.scroll tabindex="0" role="region" aria-label=(table.title) {
                table {
                    thead {
                        tr {
                            th scope="col" { (table.corner) }
                            @for column in &table.columns { th scope="col" { (column) } }
                        }
                    }
                    tbody {
                        @for (name, cells) in &table.rows {
                            tr {
                                th scope="row" { (name) }
                                @for cell in cells {
                                    @match cell {
                                        Some(cell) => td class=(class(cell)) {
                                            (format!("{:.2}", cell.value)) @if cell.is_marked { " *" }
                                        },
                                        None => td { "\u{2013}" },
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
    fn drawings_contain_their_labels_and_values() {
        let drawing = BoxDrawing {
            title: "placement".into(),
            note: "note".into(),
            columns: vec![(
                "disk 0".into(),
                vec![DrawnBox { label: "<0>".into(), group: 1, is_filled: true }],
            )],
        };
        let html = boxes(&drawing).into_string();
        assert!(html.contains("disk 0") && html.contains("&lt;0&gt;") && html.contains("colour-1"), "{html}");
        let cell = |value, is_marked| Some(ShadedCell { value, is_marked });
        let table = ShadedTable {
            title: "slowdown".into(),
            note: "note".into(),
            corner: "f".into(),
            columns: vec!["0.2".into(), "1".into(), "2".into()],
            rows: vec![("0.25".into(), vec![cell(1.0, false), cell(3.0, true), None])],
        };
        let html = shaded(&table).into_string();
        assert!(html.contains("class=\"close\">1.00<") && html.contains("class=\"low-3\">3.00 *<"), "{html}");
    }
}
