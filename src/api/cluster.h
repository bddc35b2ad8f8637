// Cluster: the calls about nodes, GPUs, pools, queues, decisions and usage.
#pragma once

#include "api/desk.h"

namespace muster::api {

void ListNodes(Desk& desk, const Call& call);
void GetNode(Desk& desk, const Call& call);
void MarkNode(Desk& desk, const Call& call);  // by the operation's verb
void ListGpus(Desk& desk, const Call& call);
void ListPools(Desk& desk, const Call& call);
void GetTopology(Desk& desk, const Call& call);
void ListQueues(Desk& desk, const Call& call);
void ApplyQueues(Desk& desk, const Call& call);
void GetQueue(Desk& desk, const Call& call);
void PutQueue(Desk& desk, const Call& call);
void DeleteQueue(Desk& desk, const Call& call);
void ListDecisions(Desk& desk, const Call& call);
void GetUsage(Desk& desk, const Call& call);
void ExportSnapshot(Desk& desk, const Call& call);

}  // namespace muster::api
