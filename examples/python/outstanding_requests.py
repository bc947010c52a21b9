# %% [markdown]
# # How many requests should a compute node have outstanding?
#
# With the traditional method a compute node asks the I/O nodes for block after block. How many requests it may have
# under way to each disk, K, is for us to choose. More of them give a disk a choice of what to serve next, if it may
# choose. What is that worth? We read a file of 10 MiB from the 16 disks of a machine of 1996.
#
# Run it as it is, or cell by cell in an editor that knows `# %%`. Needs `make python`.

# %%
import pandas as pd

import starfish

machine = starfish.Machine.load("starfish-1996")
print(machine)
print(f"a processor runs at {machine['processor.clock']}: {machine.source('processor.clock')}")

# %% [markdown]
# Two patterns: `rb`, where each node reads one large part of the file, and `rbb`, where each reads a block of a
# matrix, which is many small stretches of the file. Two disk schedules: first come, first served, and C-SCAN. One
# call of `simulate` has a row for each pattern; the table has a column for everything that was chosen.

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
# With C-SCAN, `rb` becomes several times faster with the second request: with one, a disk sees too few of them to
# put into an order. First come, first served gains next to nothing, since there K changes only how long the queue
# is. The reason is in another column, how often the disks' arms had to move:

# %%
movements = results.pivot(index=["pattern", "outstanding"], columns="scheduling", values="disk_movements")
print("\ndisk movements")
print(movements.round().astype(int).to_string())

# %% [markdown]
# What is the most that these disks could give? With the disk-directed method the I/O nodes know the whole request
# from the start, and each works through its disk in the best order.

# %%
best = starfish.simulate(["rb", "rbb"], machine=machine, method="disk-directed", trials=2)
most = best.set_index("pattern")["throughput_mib_s"]
share = throughput["cyclic-scan"].unstack("outstanding").div(most, axis="index")
print("\nof the disk-directed throughput, with C-SCAN, in %")
print((100 * share).round().astype(int).to_string())

# %% [markdown]
# So for `rb` two requests are all it takes. For `rbb` no number helps: its small stretches are asked for one after
# the other, and K is a limit that is never reached.
