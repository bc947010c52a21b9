//! Results as columns: a dictionary from a column's name to the list of its values, in the order of the columns.

use experiment::Case;
use plan::{Table, Type, Value};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::ask::Outcome;

/// One row for each experiment: first the columns of `starfish simulate --format csv`, then what else was chosen.
pub(crate) fn of_simulation<'py>(
    py: Python<'py>,
    machine: &str,
    experiments: &[Case],
    outcomes: &[Outcome],
) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    columns.set_item("machine", vec![machine; experiments.len()])?;
    of(&columns, "method", experiments, |experiment| experiment.method.to_string())?;
    of(&columns, "layout", experiments, |experiment| experiment.layout.to_string())?;
    of(&columns, "pattern", experiments, |experiment| experiment.pattern.to_string())?;
    of(&columns, "record_bytes", experiments, |experiment| experiment.problem.record_bytes)?;
    of(&columns, "trials", outcomes, |outcome| outcome.summary.trials)?;
    of(&columns, "throughput_mib_s", outcomes, |outcome| outcome.summary.throughput_mib_s)?;
    of(&columns, "cv", outcomes, |outcome| outcome.summary.cv)?;
    of(&columns, "disk_movements", outcomes, |outcome| outcome.summary.disk_movements)?;
    of(&columns, "events", outcomes, |outcome| outcome.summary.events)?;
    of(&columns, "virtual_s", outcomes, |outcome| outcome.summary.virtual_s)?;
    of(&columns, "wall_s", outcomes, |outcome| outcome.wall_s)?;
    of(&columns, "digest", outcomes, |outcome| format!("{:016x}", outcome.summary.digest))?;
    of(&columns, "seed", experiments, |experiment| experiment.seed)?;
    of(&columns, "file_bytes", experiments, |experiment| experiment.problem.file_bytes)?;
    of(&columns, "shape", experiments, |experiment| experiment.problem.shape.map(|shape| shape.to_string()))?;
    of(&columns, "grid", experiments, |experiment| experiment.problem.grid.map(|grid| grid.to_string()))?;
    of(&columns, "block_bytes", experiments, |experiment| experiment.options.block_bytes)?;
    of(&columns, "outstanding", experiments, |experiment| experiment.options.outstanding)?;
    of(&columns, "scheduling", experiments, |experiment| experiment.options.scheduling.to_string())?;
    of(&columns, "thread_per_request", experiments, |experiment| experiment.options.thread_per_request)?;
    of(&columns, "prefetch_blocks", experiments, |experiment| experiment.options.prefetch_blocks)?;
    of(&columns, "memget_writes", experiments, |experiment| experiment.options.memget_writes)?;
    of(&columns, "queued", experiments, |experiment| experiment.options.queued.to_string())?;
    of(&columns, "presort", experiments, |experiment| experiment.options.presort)?;
    Ok(columns)
}

/// Adds the column of what `value` takes from each row.
fn of<'py, Row, Value: IntoPyObject<'py>>(
    columns: &Bound<'py, PyDict>,
    name: &str,
    rows: &[Row],
    value: impl Fn(&Row) -> Value,
) -> PyResult<()> {
    columns.set_item(name, PyList::new(columns.py(), rows.iter().map(value).collect::<Vec<_>>())?)
}

/// Name, kind and values of each column of a table; what is missing is None.
pub(crate) fn of_table<'py>(py: Python<'py>, table: &Table) -> PyResult<Bound<'py, PyList>> {
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
