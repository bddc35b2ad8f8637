// Draws: the clusters, queues, policies and jobs of the swarm, from a seed.
//
// Small on purpose: a few nodes and short jobs meet each other more often than many do. Every kind
// of job that the controller treats differently is among them.
#pragma once

#include <string>
#include <vector>

#include "base/random.h"
#include "engine/policy_file.h"
#include "model/job.h"
#include "model/node.h"
#include "model/queue.h"

namespace muster::swarm {

std::vector<model::Node> DrawNodes(Random& random);
std::vector<model::Queue> DrawQueues(Random& random, std::int64_t gpus);
// Rules that may be missing without anybody's guarantee being broken.
engine::PolicyFile DrawPolicy(Random& random);
// `known` are numbers of jobs that it may follow.
model::Job DrawJob(Random& random, const std::vector<model::Queue>& queues, int gpus_of_node,
                   const std::vector<std::uint64_t>& known);

}  // namespace muster::swarm
