"""Libraries that open files on agents through fsspec."""

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import dask.dataframe
import duckdb
import fsspec
import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.fs
import pyarrow.parquet
import pytest
import xarray
import zarr

from starfish.fsspec import StarfishFileSystem

TABLE = pd.DataFrame(
    {"number": range(10_000), "kind": ["even", "odd"] * 5000, "value": np.linspace(0, 1, 10_000)}
)


@pytest.fixture
def url(agents: str, folder: str) -> str:
    return f"starfish://{agents}{folder}"


def test_pandas_reads_and_writes_parquet_and_csv(url: str) -> None:
    TABLE.to_parquet(f"{url}/new/table.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(f"{url}/new/table.parquet"), TABLE)
    some = pd.read_parquet(f"{url}/new/table.parquet", columns=["value"], filters=[("number", "<", 10)])
    assert len(some) == 10
    for name in ("table.csv", "table.csv.gz"):
        TABLE.to_csv(f"{url}/{name}", index=False)
        pd.testing.assert_frame_equal(pd.read_csv(f"{url}/{name}"), TABLE)


def test_pyarrow_reads_and_writes_data_sets(striped: StarfishFileSystem, url: str, folder: str) -> None:
    system = pa.fs.PyFileSystem(pa.fs.FSSpecHandler(striped))
    pa.dataset.write_dataset(
        pa.Table.from_pandas(TABLE),
        f"{folder}/set",
        format="parquet",
        partitioning=["kind"],
        filesystem=system,
    )
    read = pa.dataset.dataset(f"{folder}/set", partitioning=["kind"], filesystem=system)
    assert read.count_rows(filter=pa.dataset.field("kind") == "odd") == 5000
    assert read.to_table().to_pandas()["number"].sum() == TABLE["number"].sum()
    system.move(f"{folder}/set", f"{folder}/moved")
    kinds = {info.base_name for info in system.get_file_info(pa.fs.FileSelector(f"{folder}/moved"))}
    assert kinds == {"even", "odd"}
    with system.open_append_stream(f"{folder}/log") as file:
        file.write(b"one")
    with system.open_append_stream(f"{folder}/log") as file:
        file.write(b"two")
    assert striped.cat_file(f"{folder}/log") == b"onetwo"
    system.delete_dir(f"{folder}/moved")
    assert striped.ls(folder, detail=False) == [f"{folder}/log"]


def test_duckdb_queries_and_writes_parquet(striped: StarfishFileSystem, agents: str, folder: str) -> None:
    TABLE.to_parquet(f"starfish://{agents}{folder}/table.parquet")
    with duckdb.connect() as database:
        database.register_filesystem(striped)
        counted = database.sql(
            f"select kind, count(*) from 'starfish://{folder}/*.parquet' where number < 11 group by 1 order by 1"
        ).fetchall()
        assert counted == [("even", 6), ("odd", 5)]
        database.sql(f"copy (select 42 as answer) to 'starfish://{folder}/answer.parquet'")
    assert pd.read_parquet(f"starfish://{agents}{folder}/answer.parquet")["answer"].tolist() == [42]


def test_duckdb_attaches_a_database(striped: StarfishFileSystem, folder: str, tmp_path: Path) -> None:
    local = tmp_path / "made.duckdb"
    with duckdb.connect(local) as database:
        database.execute("create table answers as select 42 as answer")
    striped.put_file(str(local), f"{folder}/made.duckdb")
    with duckdb.connect() as database:
        database.register_filesystem(striped)
        database.execute(f"attach 'starfish://{folder}/made.duckdb' as made (read_only)")
        assert database.sql("select answer from made.answers").fetchall() == [(42,)]


def test_zarr_writes_and_reads_chunks(agents: str, folder: str, url: str) -> None:
    values = np.arange(600.0 * 400).reshape(600, 400)
    array = zarr.create_array(url, name="array", shape=values.shape, chunks=(100, 100), dtype="f8")
    array[:] = values
    array[10:20, 30:40] = -1
    values[10:20, 30:40] = -1
    read = zarr.open_array(url, path="array", mode="r")
    np.testing.assert_array_equal(read[:], values)
    assert StarfishFileSystem(agents).isdir(f"{folder}/array/c/0")


def test_xarray_appends_to_a_data_set_in_zarr(url: str) -> None:
    data = xarray.Dataset(
        {"temperature": (("time", "place"), np.random.default_rng(1).normal(size=(50, 20)))},
        coords={"time": np.arange(50), "place": np.arange(20)},
    )
    data.to_zarr(f"{url}/weather.zarr", consolidated=False)
    more = data.assign_coords(time=data.time + 50)
    more.to_zarr(f"{url}/weather.zarr", append_dim="time", consolidated=False)
    with xarray.open_zarr(f"{url}/weather.zarr", consolidated=False) as read:
        assert read.sizes["time"] == 100
        np.testing.assert_array_equal(read.temperature[50:], data.temperature)


# distributed leaves files and sockets to the garbage collector, which warns.
@pytest.mark.filterwarnings("ignore")
def test_dask_reads_and_writes_in_other_processes(url: str) -> None:
    frame = dask.dataframe.from_pandas(TABLE, npartitions=4)  # type: ignore[no-untyped-call]
    with (
        ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as processes,
        dask.config.set(scheduler="processes", pool=processes),
    ):
        frame.to_parquet(f"{url}/table")
        read = dask.dataframe.read_parquet(f"{url}/table")
        assert read["number"].sum().compute() == TABLE["number"].sum()
        assert os.getpid() not in set(read["number"].map_partitions(lambda _: os.getpid()).compute())


def test_hdf5_is_written_and_changed_in_place(url: str) -> None:
    with fsspec.open(f"{url}/data.h5", "w+b") as file, h5py.File(file, "w") as data:
        data.create_dataset("values", data=np.arange(100_000), chunks=(1000,), compression="gzip")
    with fsspec.open(f"{url}/data.h5", "r+b") as file, h5py.File(file, "r+") as data:
        data["values"][5] = -5
        data["group/more"] = np.ones(10)
    with fsspec.open(f"{url}/data.h5", "rb") as file, h5py.File(file, "r") as data:
        assert data["values"][:7].tolist() == [0, 1, 2, 3, 4, -5, 6]
        assert data["group/more"][:].sum() == 10
