// Cluster: the calls about nodes, GPUs, pools, queues, policies, decisions and usage.
//
// Who may change a queue is the admin of the one above it, since a quota is taken from there; who
// may change what is at the top, a node or the policy is an admin.
#pragma once

#include "api/desk.h"
#include "api/worker.h"

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
void ListPolicies(Desk& desk, const Call& call);
void GetPolicy(Desk& desk, const Call& call);
void ApplyPolicy(Desk& desk, const Call& call);
void UndoPolicy(Desk& desk, const Call& call);
void ListDecisions(Desk& desk, const Call& call);
void GetUsage(Desk& desk, Worker& clerk, const Call& call);
void ExportSnapshot(Desk& desk, const Call& call);

}  // namespace muster::api
