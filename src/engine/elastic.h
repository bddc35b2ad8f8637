// Elastic: how many GPUs each elastic job gets, of which type, and on which nodes they lie.
//
// Each job says what each size is worth to it, for each GPU type that it may have, less what is
// lost by changing to it. Of each type one price for a GPU is sought at which the sizes that pay
// best for their jobs just fit. Who has which type is improved by moving one job or exchanging two,
// as long as that pays. Places follow: who does not change stays, the others take whole nodes or
// the tightest part of one, and small ones make room for large ones.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace muster::engine {

struct ElasticSize {
  int gpus = 0;
  double value = 0;
};

struct ElasticJob {
  std::vector<ElasticSize> sizes;  // from the smallest on, which is what it needs to run
  int gpus = 0;                    // that it has
  // Where not all can run: the highest priority does, then who was served least.
  std::int64_t priority = 0;
  std::int64_t served = 0;
  bool overdue = false;    // nobody behind it begins before it
  std::uint32_t type = 0;  // of the GPUs
};

// GPUs for each job, 0 or one of its sizes, together at most `gpus`, and of each type at most what
// there is of it.
std::vector<int> DivideByValue(std::span<const ElasticJob> jobs, std::span<const int> room,
                               int gpus);

// A job as it would be on each GPU type that it may have: on the one that it has, or else on the
// one that it likes best, first.
using ElasticChoice = std::vector<ElasticJob>;

struct ElasticPart {
  std::size_t choice = 0;
  int gpus = 0;
};
std::vector<ElasticPart> DivideByType(std::span<const ElasticChoice> jobs,
                                      std::span<const int> room, int gpus);

// What an elastic job holds: the node of each GPU, in the order of nodes.
using Seats = std::vector<std::uint32_t>;

struct SeatedJob {
  Seats seats;
  int gpus = 0;         // that it is to have
  bool movable = true;  // without a change of its size, so that another one fits
  int each = 1;         // GPUs of a worker, which lie on one node
  int least = 0;        // with fewer it does not run
};

// Gives each job its seats on nodes that have so many GPUs for these jobs. A job gets fewer GPUs
// than it is to have where they would lie scattered.
std::vector<Seats> SeatByNodes(std::span<const SeatedJob> jobs, std::span<const int> node_gpus);

}  // namespace muster::engine
