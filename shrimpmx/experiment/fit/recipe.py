"""How to measure a cluster for a fit."""

RECIPE = """\
# Two nodes, A and B, with ssh; eth0 is the NIC of both. Five minutes. Only ethtool -C needs root.
# IMB-MPI1, or the OSU benchmarks: osu_latency -m 65536 for PingPong, osu_bw for Uniband.

ssh A LC_ALL=C lscpu > host.txt                     # or: ssh A lstopo --of xml > host.xml
ssh A ethtool -c eth0 > coalesce-now.txt            # to restore it at the end
printf '%s\\n' 0 128 1024 4096 65536 > sizes.txt     # five are enough
echo 128 > one.txt
pair="mpirun -np 2 -host A,B IMB-MPI1"

# Without coalescing, with a short timer, with a long one; the last run with interrupts counted.
for us in 0 25 100; do
  for node in A B; do ssh $node sudo ethtool -C eth0 adaptive-rx off rx-usecs $us; done
  ssh A ethtool -c eth0 > rx$us-coalesce.txt
  $pair -msglen sizes.txt PingPong Uniband > rx$us.txt
  ssh A cat /proc/interrupts > rx$us-before.txt
  $pair -msglen one.txt -iter 10000 -iter_policy off PingPong > rx$us-one.txt
  ssh A cat /proc/interrupts > rx$us-after.txt
done

# What each file is:
for us in 0 25 100; do
  printf '[[file]]\\npath = "rx%s.txt"\\ncoalesce = "rx%s-coalesce.txt"\\n' $us $us
  printf '[[file]]\\npath = "rx%s-one.txt"\\ncoalesce = "rx%s-coalesce.txt"\\n' $us $us
  printf 'interrupts = ["rx%s-before.txt", "rx%s-after.txt"]\\n' $us $us
  printf 'interface = "eth0"\\nround_trips = 10000\\n'
done > cluster-runs.toml

shrimpmx fit cluster-runs.toml --topology host.txt --platform xeon-100g -o cluster.toml
"""
