// Each node sends a packet to the next one, and the next packet once it has one from the node
// before: `simulators_ring NODES ROUNDS BYTES`, for ns-3, over point-to-point links of 10 Gb/s.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "ns3/core-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

using namespace ns3;

static std::vector<Ptr<NetDevice>> to_next;
static std::vector<int> sent;
static int rounds, bytes;
static long received;

static void Send(int node) {
    if (sent[node]++ < rounds)
        to_next[node]->Send(Create<Packet>(bytes), to_next[node]->GetBroadcast(), 0x0800);
}

static void Received(int node) {
    received++;
    Send(node);
}

int main(int argc, char **argv) {
    int nodes = argc > 3 ? atoi(argv[1]) : 0;
    if (nodes < 2) return 2;
    rounds = atoi(argv[2]), bytes = atoi(argv[3]);
    NodeContainer all;
    all.Create(nodes);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
    link.SetChannelAttribute("Delay", StringValue("500ns"));
    sent.assign(nodes, 0);
    for (int node = 0; node < nodes; node++) {
        int next = (node + 1) % nodes;
        NetDeviceContainer ends = link.Install(all.Get(node), all.Get(next));
        to_next.push_back(ends.Get(0));
        ends.Get(1)->SetReceiveCallback(
            [next](Ptr<NetDevice>, Ptr<const Packet>, uint16_t, const Address &) {
                Received(next);
                return true;
            });
        Simulator::Schedule(Seconds(0), &Send, node);
    }
    Simulator::Run();
    Simulator::Destroy();
    return received == (long)nodes * rounds ? 0 : 1;
}
