// LiveRound: one part of the parameters as its owner has it in the middle of an asynchronous round.
//
// Each update makes a new version of the part; before the first update of step s it is version s
// times the shards of a step. Kept outside of views, so that a worker's death costs its unit and
// not the round: the next view goes on where the part stands, if all owners are still there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "train/run/extent.h"
#include "train/run/update_log.h"
#include "train/run/workload.h"

namespace muster::train {

struct PartValues {
  std::vector<float> parameters;  // bucket after bucket
  std::vector<float> state;       // bucket after bucket, each plane after plane
};

// Where the pieces of a part lie.
class PartCut {
 public:
  PartCut(std::span<const Extent> buckets, int parts, int part, int planes);

  int parts() const { return parts_; }
  int part() const { return part_; }
  std::size_t buckets() const { return in_column_.size(); }
  std::size_t floats() const { return floats_; }
  Extent InColumn(std::size_t bucket) const { return in_column_[bucket]; }
  Extent InPart(std::size_t bucket) const { return in_part_[bucket]; }
  Extent InState(std::size_t bucket) const;

  void Collect(std::span<const float> column, std::span<float> part) const;
  void Spread(std::span<const float> part, std::span<float> column) const;
  // One update more; `version`: how many there were before it.
  void Update(const Workload& workload, std::int64_t version, std::span<const float> gradient,
              const PartValues& from, PartValues& to) const;

 private:
  int parts_, part_;
  std::size_t planes_, floats_ = 0;
  std::vector<Extent> in_column_, in_part_;
};

struct LiveRound {
  std::uint64_t attempt = 0;  // the generation in which all owners began it; 0: there is none
  std::int64_t from = 0;      // the step at its beginning
  int parts = 0;
  int part = 0;
  PartValues values, spare;
  std::vector<std::uint8_t> applied;  // by unit of the round
  std::vector<Update> updates;        // so far, in their order
};

}  // namespace muster::train
