// TrainState: the parameters and the parts of the optimiser's state that this worker has.
//
// By column. Who computes a column has all its parameters; who owns or mirrors a part of it has the
// optimiser's state of the part, and its parameters if it does not have them all. Each is kept for
// two steps, the one that is complete and the one in the making, so that a step that is broken off
// never harms the one before it, and so that workers of which some have finished a step and some
// have not can all go back to the one that all have. A new set of parts is filled beside the old
// one and takes its place only when everybody has theirs.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "train/members/view.h"
#include "train/mesh/fabric.h"
#include "train/run/arena.h"
#include "train/run/checkpoint.h"
#include "train/run/extent.h"
#include "train/run/layout.h"
#include "train/run/tags.h"
#include "train/run/transfer.h"

namespace muster::train {

// Where so many steps that are taken as one end, in a run of `steps`. The number is odd, because
// the state is kept for even and for odd steps apart.
std::int64_t RoundEnd(std::int64_t from, std::int64_t round, std::int64_t steps);

// Something that is kept for two steps.
struct Kept {
  static constexpr std::int64_t kNothing = -1;
  std::array<Arena::Block, 2> blocks;
  std::array<std::int64_t, 2> steps{kNothing, kNothing};  // that the blocks are complete for
  std::span<float> At(std::int64_t step) const { return blocks[Slot(step)].floats(); }
  bool Has(std::int64_t step) const { return steps[Slot(step)] == step; }
  void Set(std::int64_t step) { steps[Slot(step)] = step; }
  void Void(std::int64_t step) { steps[Slot(step)] = kNothing; }
  static std::size_t Slot(std::int64_t step) { return static_cast<std::size_t>(step & 1); }
};

// What is held of one column.
class ColumnState {
 public:
  // One of `parts` parts, of every bucket.
  struct Part {
    int parts = 1;
    int part = 0;
    bool own = false;
    bool with_parameters = false;  // in `parameters`; else they are among all of the column
    Kept state, parameters;
    std::vector<std::size_t> offsets;  // of each bucket in a block with one plane
  };

  ColumnState(int column, Buckets buckets, int planes, Arena& arena);

  int column() const { return column_; }
  const Buckets& buckets() const { return buckets_; }
  std::size_t floats() const { return floats_; }
  // All of them, for one who computes.
  std::span<float> Parameters(std::int64_t step) const { return whole_.At(step); }
  std::span<float> ParametersOf(const Part& part, std::int64_t step, std::size_t bucket) const;
  // Plane after plane.
  std::span<float> StateOf(const Part& part, std::int64_t step, std::size_t bucket) const;
  std::span<Part> parts() { return parts_; }  // the own one first

  // A step is in the making: what the blocks for it held is void.
  void Begin(std::int64_t step);
  void Complete(std::int64_t step);

 private:
  friend class TrainState;

  Part NewPart(int parts, int part, bool own);
  void Hold(std::vector<Holding>& out) const;
  void Prepare(const Layout& layout, int rank);
  void ForgetAllBut(std::int64_t step);
  void Load(const CheckpointPart& read, std::int64_t step);
  void Installed(std::int64_t step);
  void Keep(std::int64_t step);
  bool Holds(const Part& part, std::int64_t step) const {
    return part.state.Has(step) && (part.with_parameters ? part.parameters : whole_).Has(step);
  }
  CheckpointPart Copy(const Part& part, std::int64_t step) const;
  std::span<float> Piece(const Part& part, const Holding& holding, const Move& move,
                         int plane) const;
  std::span<float> SourceOf(const Move& move, int plane) const;
  std::span<float> TargetOf(const Move& move, int plane) const;

  int column_;
  Buckets buckets_;
  int planes_;
  Arena& arena_;
  std::size_t floats_ = 0;
  bool computes_ = false;  // in the view that is being installed
  Kept whole_;             // parameters, of one who computes or did
  std::vector<Part> parts_;
  std::vector<Part> next_;  // being installed
};

class TrainState {
 public:
  using Start = std::function<void(int column, std::span<float> parameters)>;

  // Bytes of the arena that are enough for one worker of any number of workers. `floats`: of each
  // column; `planes`: floats that the optimiser keeps for each parameter; `fewest`: parts of a
  // column when somebody who does not compute it holds one.
  static std::size_t BytesFor(std::span<const std::size_t> floats, int planes, int fewest);

  // `run`: what its checkpoints say they are of (terms.h); those of another one are refused.
  TrainState(const std::vector<Buckets>& buckets, int planes, Arena& arena, std::string run);

  std::int64_t completed() const { return completed_; }
  ColumnState& At(int column) { return columns_[static_cast<std::size_t>(column)]; }
  std::vector<Holding> Holdings() const;
  void Complete(std::int64_t step);

  // Becomes the state that this rank of the view needs: from what all hold, a checkpoint, or the
  // start. On an error nothing that was held is lost. Those who leave only hand over.
  Result<void> Install(const ChangeMessage& change, const Layout& layout, Fabric& fabric,
                       const Start& start, const CheckpointFolder& checkpoints);
  // Everybody has installed: the parts of before are gone.
  void Keep();

  // This worker's parts of the state after the last step, parameters included.
  std::vector<CheckpointPart> Copy(std::int64_t step, const CheckpointView& view, bool mirrored);

 private:
  Result<void> StartOver(const View& view, const Start& start, const CheckpointFolder& checkpoints);
  Result<void> Load(const CheckpointPart& read, std::int64_t step);

  std::vector<Buckets> buckets_;
  int planes_;
  std::string run_;
  std::int64_t completed_ = 0;
  std::vector<ColumnState> columns_;
};

}  // namespace muster::train
