// ColumnWork: what the cells of a column compute: a stage of the layers, a slice of each.
//
// A shard passes through a column forward and, some shards later, back; in between the column keeps
// what it needs of it. Cells of one shard hand each other activations, their gradients, and the
// summands of layers that are cut inside. Parameters are those of the column alone. Calls for
// different shards may come from different threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "train/run/tags.h"
#include "train/run/workload.h"

namespace muster::train {

// The cells of the same shard. Each call may wait; false: break off, the step will not count.
class Neighbours {
 public:
  virtual ~Neighbours() = default;
  virtual void Send(int column, TagKind kind, int layer, std::span<const float> values) = 0;
  virtual bool Receive(int column, TagKind kind, int layer, std::span<float> values) = 0;
};

class ColumnWork {
 public:
  virtual ~ColumnWork() = default;
  virtual std::vector<std::size_t> LayerFloats() const = 0;  // together all parameters
  virtual void Start(std::uint64_t seed, std::span<float> parameters) const = 0;
  virtual bool Forward(std::int64_t step, int shard, std::span<const float> parameters,
                       Neighbours& neighbours) = 0;
  // Writes all of the gradient, unless it is told to break off. The numbers are there at the last
  // stage.
  virtual ShardResult Backward(std::int64_t step, int shard, std::span<const float> parameters,
                               std::span<float> gradient, Neighbours& neighbours,
                               ShardProgress& progress) = 0;
};

}  // namespace muster::train
