// Ever: what the cluster could take of a job if nothing ran on it, and what it lacks.
//
// Asked of jobs that wait or are submitted; a node counts whether it is in service or not, unless
// the question says otherwise. Upper bounds: each node is looked at alone, and a worker that fits
// by every number counts as one that fits. Costs one look at every bank of GPUs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/cluster.h"
#include "engine/placement.h"

namespace muster::engine {

// Why no number of the workers, or too few, could ever run: the first that no node has enough of.
struct Shortage {
  enum class Kind : std::uint8_t {
    kPlace,      // no node is allowed: labels, names, confinement
    kGpuType,    // no GPU of an allowed type
    kGpuMemory,  // of one GPU
    kGpus,       // on one node
    kHost,       // resource `host` of one node
    kTogether,   // each of these is somewhere, all of them nowhere
    kWorkers,    // one fits, so many do not
  };
  Kind kind = Kind::kWorkers;
  ShapeId shape = kNone;
  std::size_t host = 0;
  std::int64_t asked = 0;
  std::int64_t most = 0;  // that there is of it
  LevelId level = kNone;  // kWorkers: within one domain of it
};

enum class Nodes : std::uint8_t { kAll, kInService };

// Of at most `workers`, how many the node could take on those GPUs.
std::int64_t EverOn(const Cluster& cluster, ShapeId shape, NodeId node, std::uint64_t devices,
                    std::int64_t workers);
// The same of all nodes, or where they must be together in the best domain.
std::int64_t FitEver(const Cluster& cluster, ShapeId shape, LevelId level, std::int64_t workers,
                     Nodes which);
Shortage FindShortage(const Cluster& cluster, ShapeId shape, LevelId level, std::int64_t workers);
// What the piece is charged at least: a share by memory costs less on a larger GPU.
Vec LeastCost(const Cluster& cluster, const Piece& piece);
// "8 GPUs on one node are asked for; the largest node has 4"
std::string Describe(const Cluster& cluster, const Shortage& shortage);

}  // namespace muster::engine
