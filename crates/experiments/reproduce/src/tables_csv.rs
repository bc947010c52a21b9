//! Writes the simulated tables as CSV: the columns of the published tables, then `cv` and `trials`.

use crate::published::COLUMNS;
use crate::results::ReportTable;
use plan::Quantity;

/// Returns the tables in the form of the published tables, as the text of a CSV file.
///
/// Throughput is in MiB/s with four decimals, movements have one decimal; both are means over the trials.
/// `differs_significantly` is `yes` or `no` in the rows of all variants except the first of a table. Each of these
/// variants is compared with the first by Student's two-sided paired t-test over the trials, at 95 %. The field is
/// empty for a single trial. `cv` is the standard deviation divided by the mean.
pub fn tables_csv(tables: &[ReportTable]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let written = "writing to memory";
    writer.write_record(COLUMNS.iter().chain(&["cv", "trials"])).expect(written);
    for table in tables {
        for cell in table.in_order() {
            let base = table.base(cell);
            let differs = match base.and_then(|base| cell.sample.differs_from(&base.sample)) {
                None => "",
                Some(true) => "yes",
                Some(false) => "no",
            };
            let fields = [
                table.number.to_string(),
                table.system.clone(),
                table.layout.clone(),
                cell.variant.clone(),
                cell.pattern.clone(),
                cell.record_bytes.to_string(),
                value(table.quantity, cell.sample.mean()),
                differs.to_owned(),
                format!("{:.5}", cell.sample.cv()),
                cell.sample.count().to_string(),
            ];
            writer.write_record(fields).expect(written);
        }
    }
    String::from_utf8(writer.into_inner().expect(written)).expect("text in, text out")
}

fn value(quantity: Quantity, value: f64) -> String {
    match quantity {
        Quantity::Throughput | Quantity::Time => format!("{value:.4}"),
        Quantity::Movements => format!("{value:.1}"),
    }
}
