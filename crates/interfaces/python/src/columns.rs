//! Converts results to columns: a dictionary from the name of each column to the list of its values.

use experiment::{Case, FIELDS, Shown};
use plan::{ResultTable, Type, Value};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::simulate_arguments::Outcome;

/// Returns one row for each case: first the columns of `starfish simulate --format csv`, then the fields of the case.
pub(crate) fn of_simulation<'py>(
    py: Python<'py>,
    machine: &str,
    cases: &[Case],
    outcomes: &[Outcome],
) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    columns.set_item("machine", vec![machine; cases.len()])?;
    of(&columns, "method", cases, |case| case.method.to_string())?;
    of(&columns, "layout", cases, |case| case.layout.to_string())?;
    of(&columns, "pattern", cases, |case| case.pattern.to_string())?;
    of(&columns, "record_bytes", cases, |case| case.problem.record_bytes)?;
    of(&columns, "trials", outcomes, |outcome| outcome.summary.trials)?;
    of(&columns, "throughput_mib_s", outcomes, |outcome| outcome.summary.throughput_mib_s)?;
    of(&columns, "cv", outcomes, |outcome| outcome.summary.cv)?;
    of(&columns, "disk_movements", outcomes, |outcome| outcome.summary.disk_movements)?;
    if outcomes.iter().any(|outcome| outcome.summary.flushes.is_some()) {
        of(&columns, "flushes", outcomes, |outcome| outcome.summary.flushes.map(|(flushes, _)| flushes))?;
        of(&columns, "directory_flushes", outcomes, |outcome| {
            outcome.summary.flushes.map(|(_, count)| count)
        })?;
    }
    of(&columns, "events", outcomes, |outcome| outcome.summary.events)?;
    of(&columns, "virtual_s", outcomes, |outcome| outcome.summary.virtual_s)?;
    of(&columns, "wall_s", outcomes, |outcome| outcome.wall_s)?;
    of(&columns, "digest", outcomes, |outcome| format!("{:016x}", outcome.summary.digest))?;
    of(&columns, "seed", cases, |case| case.seed)?;
    for field in FIELDS.iter().filter(|field| !field.column.is_empty()) {
        let values = cases.iter().map(|case| shown(py, field.shown(case))).collect::<PyResult<Vec<_>>>()?;
        columns.set_item(field.column, PyList::new(py, values)?)?;
    }
    Ok(columns)
}

fn shown(py: Python<'_>, value: Shown) -> PyResult<Bound<'_, PyAny>> {
    match value {
        Shown::Text(text) => text.into_bound_py_any(py),
        Shown::Whole(number) => number.into_bound_py_any(py),
        Shown::Flag(flag) => flag.into_bound_py_any(py),
        Shown::Missing => Ok(py.None().into_bound(py)),
    }
}

/// Adds a column with the `value` of each row.
fn of<'py, Row, Value: IntoPyObject<'py>>(
    columns: &Bound<'py, PyDict>,
    name: &str,
    rows: &[Row],
    value: impl Fn(&Row) -> Value,
) -> PyResult<()> {
    columns.set_item(name, PyList::new(columns.py(), rows.iter().map(value).collect::<Vec<_>>())?)
}

/// Returns name, kind and values of each column of a table. A missing value becomes None.
pub(crate) fn of_table<'py>(py: Python<'py>, table: &ResultTable) -> PyResult<Bound<'py, PyList>> {
    let columns = PyList::empty(py);
    for (index, column) in table.columns.iter().enumerate() {
        let values = table.rows.iter().map(|row| to_python(py, &row[index])).collect::<PyResult<Vec<_>>>()?;
        columns.append((&column.name, kind(column.kind), values))?;
    }
    Ok(columns)
}

fn kind(kind: Type) -> &'static str {
    match kind {
        Type::Text => "text",
        Type::Integer => "integer",
        Type::Number => "number",
        Type::Flag => "flag",
    }
}

fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Text(text) => text.into_bound_py_any(py),
        Value::Integer(number) => number.into_bound_py_any(py),
        Value::Number(number) => number.into_bound_py_any(py),
        Value::Flag(flag) => flag.into_bound_py_any(py),
        Value::Missing => Ok(py.None().into_bound(py)),
    }
}
