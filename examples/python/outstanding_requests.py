# %% [markdown]
# # How many requests should a compute node have outstanding?
#
# With the traditional method, a compute node requests block after block from the I/O nodes. We can choose the
# maximum number K of requests in flight from a compute node to each disk. With more requests, a disk can
# choose which request to serve next, if its scheduling allows. What is the gain? We read a file of 10 MiB
# from the 16 disks of a machine of 1996.
#
# Run the file as a program, or cell by cell in an editor that supports `# %%`. It needs `make python`.

# %%
import pandas as pd

import starfish

machine = starfish.Machine.load("starfish-1996")
print(machine)
print(f"a processor runs at {machine['processor.clock']}: {machine.source('processor.clock')}")

# %% [markdown]
# We compare two patterns: with `rb`, each node reads one large part of the file; with `rbb`, each node reads
# a block of a matrix, which consists of many small ranges of the file. And we compare two disk schedules:
# first come, first served, and C-SCAN. A call of `simulate` returns a row for each pattern; the table has a
# column for each choice.

# %%
results = pd.concat(
    starfish.simulate(
        ["rb", "rbb"],
        machine=machine,
        method="traditional",
        outstanding=outstanding,
        scheduling=scheduling,
        trials=2,
    )
    for outstanding in (1, 2, 4, 8)
    for scheduling in ("fcfs", "cyclic-scan")
)

throughput = results.pivot(index=["pattern", "outstanding"], columns="scheduling", values="throughput_mib_s")
print("\nthroughput in MiB/s")
print(throughput.round(1).to_string())

# %% [markdown]
# With C-SCAN, `rb` becomes several times faster with a second request: with one request per node, a disk has
# too few requests to sort. With first come, first served, K changes only the length of the queue, and there
# is almost no gain. Another column shows the reason, the number of movements of the disk arms:

# %%
movements = results.pivot(index=["pattern", "outstanding"], columns="scheduling", values="disk_movements")
print("\ndisk movements")
print(movements.round().astype(int).to_string())

# %% [markdown]
# What is the maximum throughput of these disks? With the disk-directed method, the I/O nodes know the whole
# request from the start, and each accesses its disks in the best order.

# %%
best = starfish.simulate(["rb", "rbb"], machine=machine, method="disk-directed", trials=2)
most = best.set_index("pattern")["throughput_mib_s"]
share = throughput["cyclic-scan"].unstack("outstanding").div(most, axis="index")
print("\nof the disk-directed throughput, with C-SCAN, in %")
print((100 * share).round().astype(int).to_string())

# %% [markdown]
# So for `rb` two requests suffice. For `rbb` no number helps: a node requests its small ranges one after the
# other, and never has K requests in flight.
