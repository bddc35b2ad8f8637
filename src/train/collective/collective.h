// Collective: what the members of a gang do together on float32 vectors.
//
// Every member makes the same calls in the same order. The algorithm is picked by size and topology
// from the cost model. A call that fails aborts the Fabric for all members, so that nobody waits
// for this one and nothing is received into memory that is gone. Of the tags of the Fabric it uses
// those with the highest bit set and its channel behind it; several at a time need different
// channels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "train/collective/algorithms.h"
#include "train/collective/cost_model.h"
#include "train/mesh/fabric.h"

namespace muster::train {

struct CollectiveOptions {
  CostModel model = {};
  std::uint16_t channel = 0;
  int members = 0;  // the first so many of the fabric; 0: all
};

class Collective {
 public:
  // Exchanges who shares memory with whom: all members make it at the same place.
  static Result<std::unique_ptr<Collective>> Open(Fabric& fabric,
                                                  const CollectiveOptions& options = {});

  // Measures messages to a near and a far peer, some milliseconds; all members take what rank 0 and
  // its peers saw.
  Result<void> Probe();
  const CostModel& model() const { return model_; }
  const std::vector<int>& hosts() const { return hosts_; }  // by rank: the first rank there

  // In place, float32, sum. The same bits on every member; the order of the sum depends on the
  // algorithm and the number of members.
  Result<void> AllReduce(std::span<float> values, Algorithm algorithm = Algorithm::kAuto);
  // 16 bits a number on the wire, see AllReduceHalf.
  Result<void> AllReduceHalf(std::span<float> values, std::span<float> residual);
  Result<void> ReduceScatter(std::span<float> values);
  Result<void> AllGather(std::span<float> values);
  Result<void> Broadcast(std::span<std::byte> bytes, int root);
  Result<void> Barrier();
  // What ReduceScatter and AllGather call the part of a rank.
  std::span<float> Part(std::span<float> values, int rank) const;

 private:
  Collective(Fabric& fabric, const CollectiveOptions& options);
  Group NextGroup();
  Result<void> LearnHosts();
  Result<void> ProbeLink(bool near, int first, int second, LinkCost& cost);
  Result<void> Kept(Result<void> done);

  Fabric& fabric_;
  CostModel model_;
  const std::uint16_t channel_;
  const int members_;
  std::uint64_t calls_ = 0;
  std::vector<int> hosts_;
};

}  // namespace muster::train
