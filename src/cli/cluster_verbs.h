// The verbs about the cluster: nodes, GPUs, queues, recordings.
//
// Tables mark what is virtual or simulated. Replaying needs no daemon.
#pragma once

#include <string>

#include "cli/session.h"

namespace muster::cli {

int Nodes(Session& session);
int MarkNode(Session& session, const std::string& node, const std::string& verb,
             const client::Client::Query& query);
int Gpus(Session& session, bool topology);
int Queues(Session& session);
int ApplyQueues(Session& session, const std::string& file, const client::Client::Query& query);
// Over a file that is there only when that is said.
int SaveSnapshot(Session& session, const std::string& file, bool over);
int SavePast(Session& session, const std::string& file, const std::string& since, bool over);
int ReplaySnapshot(const std::string& file, Output output);

}  // namespace muster::cli
