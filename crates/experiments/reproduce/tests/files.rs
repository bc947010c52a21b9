//! Tests of the two files of a study, with made-up results.

mod made_up;

use reproduce::{COLUMNS, PublishedTables, Report, tables_csv};
use scraper::{Html, Selector};

fn page(published: &PublishedTables) -> String {
    let (tables, figures) = (made_up::tables(), made_up::figures());
    let provenance = made_up::provenance();
    Report { study: "made-up", tables: &tables, figures: &figures, published, provenance }.html()
}

/// Returns the page as a browser parses it.
fn parsed(published: &PublishedTables) -> Html {
    let page = Html::parse_document(&page(published));
    assert!(page.errors.is_empty(), "{:?}", page.errors);
    page
}

fn texts(page: &Html, selector: &str) -> Vec<String> {
    let selector = Selector::parse(selector).expect("a selector");
    let text = |element: scraper::ElementRef<'_>| element.text().collect::<String>();
    page.select(&selector).map(|element| text(element).replace('\u{a0}', " ")).collect()
}

#[test]
fn the_csv_file_equals_the_golden_file() {
    assert_eq!(tables_csv(&made_up::tables()), include_str!("golden/tables.csv"));
}

#[test]
fn the_csv_columns_are_the_published_ones_and_two_more() {
    assert_eq!(tables_csv(&[]).trim_end(), format!("{},cv,trials", COLUMNS.join(",")));
}

#[test]
fn the_page_has_every_table_and_figure_and_links_to_them() {
    let page = parsed(&made_up::published());
    let titles = texts(&page, "h3");
    for (title, expected) in
        titles.iter().zip(["Table 2: made up <tpfs>", "Table 3", "Table 16", "Figure 2: made up"])
    {
        assert!(title.starts_with(expected), "{title}");
    }
    assert_eq!(titles.len(), 4);
    let (links, ids) = (Selector::parse("a[href]").expect("links"), Selector::parse("[id]").expect("ids"));
    let ids: Vec<_> = page.select(&ids).filter_map(|element| element.value().id()).collect();
    for link in page.select(&links).filter_map(|element| element.value().attr("href")) {
        assert!(link.strip_prefix('#').is_some_and(|id| ids.contains(&id)), "{link} leads nowhere");
    }
}

#[test]
fn every_row_of_a_table_has_the_columns_of_its_head() {
    let page = parsed(&made_up::published());
    let select = |selector| Selector::parse(selector).expect("a selector");
    let (rows, cells) = (select("table.results tbody tr, figure tbody tr"), select("th, td"));
    let mut seen = 0;
    for row in page.select(&rows) {
        let width = |cell: scraper::ElementRef<'_>| -> usize {
            cell.value().attr("colspan").map_or(1, |columns| columns.parse().expect("a number"))
        };
        let columns: usize = row.select(&cells).map(width).sum();
        let table = row
            .ancestors()
            .filter_map(scraper::ElementRef::wrap)
            .find(|above| above.value().name() == "table");
        let last_head = table.expect("a table").select(&select("thead tr:last-child th")).count();
        let several_heads = table.expect("a table").select(&select("thead tr")).count() > 1;
        // The title of the pattern column is in the first row of the head.
        assert_eq!(columns, last_head + usize::from(several_heads));
        seen += 1;
    }
    assert_eq!(seen, 2 + 1 + 1 + 8);
}

#[test]
fn a_row_has_simulated_and_published_values_and_the_error() {
    let page = parsed(&made_up::published());
    let row = texts(&page, "#table-2 tbody tr:first-child > *");
    let expected = [
        // The pattern, then placeholders for two variants and a ratio, because there are no records of 8 bytes.
        "ra",
        "\u{2013}",
        "\u{2013}",
        "\u{2013}",
        "474.5",
        "474.9",
        "\u{2212}0.1 %",
        "500.0",
        "500.7",
        "\u{2212}0.1 %",
        "1.05*",
        "1.05*",
    ];
    assert_eq!(row, expected);
    let prediction = texts(&page, "#table-16 tbody tr:first-child > *");
    assert_eq!(
        prediction,
        ["wb", "4.90", "\u{2013}", "4.91", "\u{2013}", "7.30", "\u{2013}", "1.00", "1.49"]
    );
}

#[test]
fn the_summary_lists_the_disagreements() {
    let page = parsed(&made_up::published());
    let words = texts(&page, "#summary li").join("\n");
    // Two of the six cells have large errors: 7.125 instead of 4.0, and 7.1 instead of 8.0.
    assert!(words.contains("Of 6 throughput cells with a published value, half are within 0.1 %"), "{words}");
    assert!(words.contains("66.7 % within 10 %. The largest error is +78.1 %"), "{words}");
    assert!(words.contains("Of 2 counts of disk movements"), "{words}");
    // For 8-byte rb, the ratio is below 1 in the report and above 1 in the simulation.
    assert!(words.contains("Of 3 ratios that the report marks"), "{words}");
    assert!(words.contains("were rounded, 2 are on the same side"), "{words}");
    let wrong = texts(&page, "#summary table:last-of-type caption").join("\n");
    assert!(wrong.contains("Ratios on the wrong side of 1"), "{wrong}");
    assert!(
        texts(&page, "#summary p").concat().contains("without published values to compare with: table 16.")
    );
}

#[test]
fn a_page_without_published_values_is_marked_as_prediction() {
    let page = parsed(&PublishedTables::default());
    assert!(texts(&page, "#summary p").concat().contains("all values are predictions"));
    assert_eq!(texts(&page, "h3 .predicted").len(), 3);
}

#[test]
fn the_page_is_self_contained_and_reproducible() {
    let page = page(&made_up::published());
    for foreign in ["http://", "https://", "<script", "<link", "<img", "@import", "url("] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert_eq!(page, self::page(&made_up::published()));
}

#[test]
fn a_figure_has_a_line_a_name_and_bars_for_each_pattern() {
    let page = parsed(&made_up::published());
    assert_eq!(texts(&page, "svg polyline").len(), 7);
    assert_eq!(texts(&page, "svg .name").concat().len(), "rarnrbrnbrbbrcbrcn".len());
    assert_eq!(texts(&page, "svg .bar").len(), 7 * 8);
}
