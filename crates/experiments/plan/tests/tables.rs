//! Tests of tables as files: third-party readers read back the written values.

use std::fs::File;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use plan::{
    Case, Column, Journal, PlacementCase, Plan, PlanKind, ResultTable, Type, Value, cell_table, execute,
    results, trial_table, trials,
};

fn column(name: &str, kind: Type) -> Column {
    Column { name: name.to_owned(), kind }
}

/// Returns a table with every kind of value, including extreme values of each kind.
fn awkward() -> ResultTable {
    let columns = vec![
        column("text", Type::Text),
        column("integer", Type::Integer),
        column("number_mib_s", Type::Number),
        column("flag", Type::Flag),
    ];
    let row = |text: &str, integer, number, flag| {
        vec![Value::Text(text.to_owned()), Value::Integer(integer), Value::Number(number), Value::Flag(flag)]
    };
    let missing = vec![Value::Missing, Value::Missing, Value::Missing, Value::Missing];
    let rows = vec![
        row("a,\"b\"\nc", 0, 0.1 + 0.2, true),
        missing,
        row("r\u{e9}sum\u{e9}", i64::MAX as u64, f64::MIN_POSITIVE, false),
        row("", 7, 1e300, true),
    ];
    ResultTable { columns, rows }
}

fn parquet(table: &ResultTable) -> SerializedFileReader<File> {
    let file = tempfile::tempfile().expect("a temporary file");
    table.write_parquet(&file).expect("there is room");
    SerializedFileReader::new(file).expect("a Parquet file")
}

/// Returns the table in a Parquet file.
fn read_back(reader: &SerializedFileReader<File>) -> Vec<Vec<Value>> {
    let value = |field: &Field| match field {
        Field::Str(text) => Value::Text(text.clone()),
        Field::Long(number) => Value::Integer(*number as u64),
        Field::Double(number) => Value::Number(*number),
        Field::Bool(flag) => Value::Flag(*flag),
        Field::Null => Value::Missing,
        other => panic!("a column of another kind: {other:?}"),
    };
    let rows = reader.get_row_iter(None).expect("rows");
    rows.map(|row| row.expect("a row").get_column_iter().map(|(_, field)| value(field)).collect()).collect()
}

#[test]
fn a_parquet_file_has_the_table_and_the_program_version() {
    let table = awkward();
    let reader = parquet(&table);
    assert_eq!(read_back(&reader), table.rows);
    let metadata = reader.metadata().file_metadata();
    let names: Vec<_> =
        metadata.schema_descr().columns().iter().map(|column| column.name().to_owned()).collect();
    assert_eq!(names, ["text", "integer", "number_mib_s", "flag"]);
    let program = metadata.key_value_metadata().expect("metadata").iter().find(|pair| pair.key == "starfish");
    assert_eq!(program.and_then(|pair| pair.value.as_deref()), Some(plan::PROGRAM));
    let empty = ResultTable { rows: Vec::new(), ..table };
    assert_eq!(read_back(&parquet(&empty)), empty.rows);
}

#[test]
fn csv_and_json_hold_the_table() {
    let table = awkward();
    let mut text = Vec::new();
    table.write_csv(&mut text).expect("memory");
    let mut reader = csv::Reader::from_reader(text.as_slice());
    assert_eq!(reader.headers().expect("a header"), vec!["text", "integer", "number_mib_s", "flag"]);
    let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.expect("a row")).collect();
    assert_eq!(rows[0], vec!["a,\"b\"\nc", "0", "0.30000000000000004", "true"]);
    assert_eq!(rows[1], vec!["", "", "", ""]);
    assert_eq!(rows[2][2].parse(), Ok(f64::MIN_POSITIVE));
    let json = table.to_json();
    assert_eq!((&json[0]["number_mib_s"], &json[2]["integer"]), (&(0.1 + 0.2).into(), &i64::MAX.into()));
    assert!(json[1]["text"].is_null() && json[1]["flag"].is_null());
}

/// Returns the tables of cells and of trials of a plan that has `cells` cells. Checks that every column has values of
/// its kind, even after writing and reading back.
fn tables<K: PlanKind>(plan: Plan<K>, cells: usize) -> [ResultTable; 2] {
    let plans = [plan];
    let mut journal = Journal::in_memory();
    let failures = execute(&trials(&plans), &mut journal, 2, &|| false, &|_| {}).expect("a journal");
    assert!(failures.is_empty(), "{failures:?}");
    let results = results(&plans, &journal);
    let tables = [cell_table(&results), trial_table(&results)];
    for (table, rows) in tables.iter().zip([cells, 2 * cells]) {
        assert_eq!(table.rows.len(), rows);
        assert_eq!(read_back(&parquet(table)), table.rows);
        let mut names: Vec<_> = table.columns.iter().map(|column| &column.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), table.columns.len());
        for row in &table.rows {
            assert_eq!(row.len(), table.columns.len());
            for (column, value) in table.columns.iter().zip(row) {
                let fits = matches!(
                    (column.kind, value),
                    (Type::Text, Value::Text(_))
                        | (Type::Integer, Value::Integer(_))
                        | (Type::Number, Value::Number(_))
                        | (Type::Flag, Value::Flag(_))
                        | (_, Value::Missing)
                );
                assert!(fits, "{}: {value:?}", column.name);
            }
        }
    }
    tables
}

fn value(table: &ResultTable, row: usize, name: &str) -> Value {
    let column = table.columns.iter().position(|column| column.name == name).expect("a column");
    table.rows[row][column].clone()
}

#[test]
fn columns_of_result_tables_have_values_of_their_type() {
    let text = "name = \"t\"\npatterns = [\"rb\"]\nmethod = \"disk-directed\"\nfile_size = \"128 KiB\"\ntrials = 2\n\
        [vary]\nset = { \"nodes.io\" = [8, 16], \"processor.clock\" = [\"50 MHz\"] }\n";
    for table in tables::<Case>(Plan::parse(text, "t.toml").expect("it is valid"), 2) {
        assert_eq!(value(&table, 0, "nodes_io"), Value::Integer(8));
        assert_eq!(value(&table, 0, "processor_clock"), Value::Text("50 MHz".to_owned()));
    }
}

#[test]
fn columns_of_placement_tables_have_values_of_their_type() {
    let text = "name = \"t\"\nrun_blocks = 20\nruns = 4\ntrials = 2\n\
        [vary]\nbuffer_blocks = [1000, \"unlimited\"]\nkind = [\"merge\"]\nset = { \"nodes.io\" = [6] }\n";
    let plan: Plan<PlacementCase> = Plan::parse(text, "t.toml").expect("it is valid");
    let [cells, trials] = tables(plan, 2);
    for table in [&cells, &trials] {
        let last = table.rows.len() - 1;
        assert_eq!(value(table, 0, "buffer_blocks"), Value::Integer(1000));
        assert_eq!(value(table, last, "buffer_blocks"), Value::Missing);
        assert_eq!(
            value(table, 0, "varied"),
            Value::Text("buffer_blocks=1000 kind=merge nodes.io=6".to_owned())
        );
        let counts = ["jobs", "disks", "compute_nodes", "io_nodes"].map(|name| value(table, 0, name));
        assert_eq!(counts, [5, 5, 5, 6].map(Value::Integer), "what the plan sets counts");
    }
    // A table of cells has means; a table of trials has whole numbers.
    assert!(matches!(value(&cells, 0, "pending_writes_most"), Value::Number(_)));
    assert!(matches!(value(&trials, 0, "pending_writes_most"), Value::Integer(_)));
    let number = |name: &str| match value(&trials, 0, name) {
        Value::Number(number) => number,
        other => panic!("{name}: {other:?}"),
    };
    assert!(number("first_s") <= number("elapsed_s") && number("first_s") > 0.0);
    assert!((number("write_ms") / number("read_ms") / number("ratio") - 1.0).abs() < 1e-6);
}
