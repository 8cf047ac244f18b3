"""How to measure a cluster for a fit."""

RECIPE = """\
# Two nodes, A and B; eth0 is the NIC of both. Five minutes. Only ethtool -C needs root.
# One group of measurements for each setting; IMB-MPI1 or the OSU benchmarks, as you have them.

ethtool -c eth0 > before.txt                       # to restore it at the end
printf '%s\\n' 0 128 1024 4096 65536 > sizes.txt   # five are enough

# 1. without coalescing (on A and B)
ethtool -C eth0 adaptive-rx off rx-usecs 0
mpirun -np 2 -host A,B IMB-MPI1 -msglen sizes.txt PingPong Uniband > rx0.txt
# 2. a short timer
ethtool -C eth0 rx-usecs 25
mpirun -np 2 -host A,B IMB-MPI1 -msglen sizes.txt PingPong Uniband > rx25.txt
# 3. a long one
ethtool -C eth0 rx-usecs 100
mpirun -np 2 -host A,B IMB-MPI1 -msglen sizes.txt PingPong Uniband > rx100.txt
# or: mpirun -np 2 -host A,B osu_latency -m 65536 > rx0-latency.txt; ... osu_bw > rx0-bw.txt

# cluster-runs.toml, with the settings of each file:
[[file]]
path = "rx0.txt"
coalescing = "disabled"
[[file]]
path = "rx25.txt"
coalescing = "timeout"
rx_usecs = 25
[[file]]
path = "rx100.txt"
coalescing = "timeout"
rx_usecs = 100

# then
shrimpmx fit cluster-runs.toml --platform xeon-100g -o cluster.toml
shrimpmx explore --engine simulated --set platform=cluster.toml --draws 20 -n 4 ./your-program
"""
