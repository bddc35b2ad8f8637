// Exchange: how the gradients of one step become the parameters of the next, in one column.
//
// For each bucket every owner sums its part over all shards, in the order of the tree, updates it,
// and hands the new parameters to all who compute and the new state to those that mirror it. A
// thread of its own does that while gradients of earlier layers are still being computed. Where
// those who compute are the owners, each sends and receives a gradient and a set of parameters less
// its own part, which is the least there is.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "train/exact/shard_program.h"
#include "train/mesh/fabric.h"
#include "train/run/layout.h"
#include "train/run/rounded.h"
#include "train/run/state.h"
#include "train/run/workload.h"

namespace muster::train {

class Exchange {
 public:
  // The nodes that a computer sums up by itself, lane by lane; `buffers` are gradients of the
  // column, one for each node of this worker, in memory that peers can read. `rounded`: one for
  // each as well where gradients are rounded on the way, else none.
  struct Sums {
    int shards = 0;
    int lanes = 1;
    bool exact = true;
    bool half = false;
  };
  Exchange(ColumnState& state, const Workload& workload, Fabric& fabric, const Layout& layout,
           const Sums& how, std::vector<std::span<float>> buffers,
           std::vector<std::unique_ptr<Rounded>> rounded);
  ~Exchange();

  // The step that comes after `completed` steps. `measured`: square() is of that one.
  void Begin(std::int64_t completed, bool measured);
  // The gradients of all shards of this node are summed up in this bucket.
  void NodeReady(std::size_t bucket, std::size_t node);
  // Waits until this worker has all that it is to have of the new state.
  Result<void> Finish();
  // Of the gradient, on the part that this worker owns; after Finish().
  double square() const { return square_; }

 private:
  struct Source {
    int rank = 0;
    std::size_t node = 0;  // of that rank
  };
  struct Sum {
    std::size_t into = 0, left = 0, right = 0;  // indices of inputs, or past them of results
  };

  void PlanSums(const Sums& how);
  void Serve();
  Result<void> Run();
  Result<void> Reduce(std::size_t bucket);
  void HandOut(std::size_t bucket, std::span<const float> parameters, std::span<const float> state);
  Result<void> Gather(std::size_t bucket);
  Result<void> BeginWhenOffered(int rank, Tag tag);
  Result<void> FetchMirrored(const ColumnState::Part& part, std::size_t bucket);
  void SumInto(std::span<const float* const> inputs, std::span<float> out) const;
  void Offer(int rank, Tag tag, std::span<const std::byte> bytes);
  Result<void> Forget();
  Tag TagFor(std::size_t bucket, std::size_t what) const;
  Extent PartAt(std::size_t bucket, std::size_t part) const;

  ColumnState& state_;
  const Workload& workload_;
  Fabric& fabric_;
  const ColumnLayout& at_;
  bool computes_;
  std::vector<int> mirrors_;  // ranks that mirror what this one owns
  std::vector<std::span<float>> buffers_;
  std::vector<std::unique_ptr<Rounded>> rounded_;
  std::vector<float> scratch_;  // for an owner that does not compute
  bool rounds_;
  std::vector<std::vector<float>> widened_;  // by source, where gradients were rounded
  std::vector<Source> sources_;              // nodes of all ranks, from left to right
  std::vector<Sum> sums_;
  std::array<std::vector<std::pair<int, Tag>>, 2> offered_;  // in this step and in the one before
  std::mutex offering_;
  std::size_t first_mine_ = 0;  // of sources_

  std::int64_t completed_ = 0;
  bool begun_ = false;  // the new state is being written
  bool measured_ = false;
  double square_ = 0;
  std::mutex mutex_;
  std::condition_variable news_;
  std::vector<std::size_t> missing_;  // by bucket: nodes of this worker that are not ready
  bool working_ = false;
  bool ending_ = false;
  Result<void> outcome_;
  std::thread thread_;
};

}  // namespace muster::train
