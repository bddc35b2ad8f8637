// Exchange: how the gradients of one step become the parameters of the next, in one column.
//
// For each bucket every owner sums its part over all shards, in the order of the tree, updates it,
// and hands the new parameters to all who compute and the new state to those that mirror it. A
// thread of its own does that while gradients of earlier layers are still being computed. Where
// those who compute are the owners, each sends and receives a gradient and a set of parameters less
// its own part, which is the least there is; between hosts with several workers each, some carry
// for the others of their host (routes.h).
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "train/mesh/fabric.h"
#include "train/run/layout.h"
#include "train/run/rounded.h"
#include "train/run/routes.h"
#include "train/run/state.h"
#include "train/run/workload.h"

namespace muster::train {

class Exchange {
 public:
  // The nodes that a computer sums up by itself, lane by lane; `buffers` are gradients of the
  // column, one for each node of this worker, in memory that peers can read. `rounded`: one for
  // each as well where gradients are rounded on the way, else none. `hosts`: for Routes (way.h).
  Exchange(ColumnState& state, const Workload& workload, Fabric& fabric, const Layout& layout,
           std::vector<int> hosts, const Routes::Rule& rule, bool half, Arena& arena,
           std::vector<std::span<float>> buffers, std::vector<std::unique_ptr<Rounded>> rounded);
  ~Exchange();

  // The step that comes after `step.completed` steps. `measured`: square() is of that one.
  void Begin(const UpdateStep& step, bool measured, bool summed);
  // The gradients of all shards of this node are summed up in this bucket.
  void NodeReady(std::size_t bucket, std::size_t node);
  // Waits until this worker has all that it is to have of the new state.
  Result<void> Finish();
  // Of the gradient, on the part that this worker owns; after Finish().
  double square() const { return square_; }

 private:
  void Serve();
  Result<void> Run();
  void PlanToCarry(bool half, Arena& arena);
  Result<void> Carry(std::size_t bucket, std::size_t index);
  Result<void> Reduce(std::size_t bucket);
  Result<void> SumUp(const SumPlan& plan, std::size_t bucket, std::size_t index, Extent part,
                     std::span<float* const> out);
  void HandOut(std::size_t bucket, std::size_t part, std::span<const float> parameters);
  void HandToMirrors(std::size_t bucket, std::size_t part, std::span<const float> parameters,
                     std::span<const float> state);
  Result<void> Gather(std::size_t bucket);
  Result<void> BeginWhenOffered(int rank, Tag tag);
  Result<void> FetchMirrored(const ColumnState::Part& part, std::size_t bucket);
  void Offer(int rank, Tag tag, std::span<const std::byte> bytes);
  Result<void> Forget();
  enum class What : std::uint8_t { kGradient, kSum, kParameters, kState };
  Tag TagFor(std::size_t bucket, std::size_t part, What what, std::size_t index = 0) const;
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
  std::vector<std::vector<float>> widened_;  // by input, where gradients were rounded
  Routes routes_;
  std::optional<std::size_t> part_;  // that this worker owns
  SumPlan owned_;
  std::vector<std::size_t> carries_;  // parts, for this host
  SumPlan carried_;
  std::vector<std::vector<float>> sums_;      // by result of that, where there are several
  std::vector<std::span<float>> carried_to_;  // likewise: those, or a gradient of this worker
  std::vector<std::unique_ptr<Rounded>> carried_rounded_;
  std::array<std::vector<std::pair<int, Tag>>, 2> offered_;  // in this step and in the one before
  std::mutex offering_;
  std::size_t first_mine_;  // of all gradients

  UpdateStep step_;
  std::int64_t completed_ = 0;  // of it
  bool begun_ = false;          // the new state is being written
  bool measured_ = false;
  bool summed_ = false;  // by devices: the gradient of this worker is that of all, where it owns it
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
