// Courier: what cells hand each other within a step, in this process or over the fabric.
//
// Also who may compute: so many cells of this worker at a time, and none while it waits for
// another. Every wait ends when the fabric is aborted.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "train/mesh/fabric.h"
#include "train/run/column_work.h"
#include "train/run/layout.h"

namespace muster::train {

class Courier {
 public:
  Courier(Fabric& fabric, const Layout& layout, int lanes)
      : fabric_(fabric), layout_(layout), free_(lanes) {}

  // The step that comes after `completed` steps.
  void Begin(std::int64_t completed);
  // Everybody has done with the step.
  Result<void> Finish();

  // One of the lanes.
  void Take();
  void Give();

  // The cells of a shard, as one of its columns sees them.
  class Cell final : public Neighbours {
   public:
    Cell(Courier& courier, int column, int shard)
        : courier_(courier), column_(column), shard_(shard) {}
    void Send(int column, TagKind kind, int layer, std::span<const float> values) override;
    bool Receive(int column, TagKind kind, int layer, std::span<float> values) override;

   private:
    Courier& courier_;
    int column_, shard_;
  };

 private:
  Tag TagFor(int from, int to, TagKind kind, int shard, int layer) const;
  bool Await(Tag tag, std::span<float> values);

  Fabric& fabric_;
  const Layout& layout_;
  std::int64_t completed_ = 0;
  std::mutex mutex_;
  std::condition_variable news_;
  int free_;                                                   // lanes
  std::map<Tag, std::vector<float>> here_;                     // for cells of this worker
  std::map<std::pair<int, Tag>, std::vector<float>> offered_;  // to others
};

}  // namespace muster::train
