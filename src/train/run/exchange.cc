#include "train/run/exchange.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>

#include "base/check.h"
#include "train/compute/noise_scale.h"
#include "train/run/tags.h"

namespace muster::train {

namespace {

constexpr std::size_t kBlock = 2048;  // floats that are summed at once: they stay in the cache

}  // namespace

Exchange::Exchange(ColumnState& state, const Workload& workload, Fabric& fabric,
                   const Layout& layout, const Sums& how, std::vector<std::span<float>> buffers,
                   std::vector<std::unique_ptr<Rounded>> rounded)
    : state_(state),
      workload_(workload),
      fabric_(fabric),
      at_(layout.At(state.column())),
      computes_(at_.Computes(fabric.rank())),
      mirrors_(layout.MirrorsOf(fabric.rank())),
      buffers_(std::move(buffers)),
      rounded_(std::move(rounded)),
      rounds_(how.half) {
  PlanSums(how);
  widened_.resize(rounds_ ? sources_.size() : 0);
  thread_ = std::thread([this] { Serve(); });
}

void Exchange::PlanSums(const Sums& how) {
  std::vector<ShardRange> cover;
  for (std::size_t i = 0; i < at_.computers.size(); ++i) {
    const int rank = at_.computers[i];
    if (rank == fabric_.rank()) first_mine_ = sources_.size();
    std::size_t count = 0;
    for (const auto& run : LaneRuns(at_.runs[i], how.lanes)) {
      for (const auto& node : ProgramFor(run, how.shards, how.exact).nodes) {
        sources_.push_back({rank, count++});
        cover.push_back(node.range);
      }
    }
  }
  std::map<ShardRange, std::size_t> index;
  for (std::size_t i = 0; i < cover.size(); ++i) index[cover[i]] = i;
  if (how.exact) {
    for (const auto& sum : SumsOver(cover, how.shards)) {
      const std::size_t into = cover.size() + sums_.size();
      sums_.push_back({into, index.at(sum.left), index.at(sum.right)});
      index[sum.node] = into;
    }
    return;
  }
  for (std::size_t i = 1; i < cover.size(); ++i) {
    const std::size_t into = cover.size() + sums_.size();
    sums_.push_back({into, i == 1 ? 0 : into - 1, i});
  }
}

Exchange::~Exchange() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  news_.notify_all();
  thread_.join();
}

// Each is used once in a step between two workers: gradients of the nodes, new parameters, new
// state.
Tag Exchange::TagFor(std::size_t bucket, std::size_t what) const {
  return StepTag(completed_, state_.column(), TagKind::kExchange, bucket, what);
}

Extent Exchange::PartAt(std::size_t bucket, std::size_t part) const {
  return PartOf(state_.buckets()[bucket], at_.parts(), static_cast<int>(part));
}

void Exchange::Offer(int rank, Tag tag, std::span<const std::byte> bytes) {
  {
    const std::lock_guard lock(offering_);
    offered_[static_cast<std::size_t>(completed_ & 1)].emplace_back(rank, tag);
  }
  fabric_.Offer(rank, tag, bytes);
}

// What was offered in the step before was taken in that step: this does not wait for anybody.
Result<void> Exchange::Forget() {
  auto& before = offered_[static_cast<std::size_t>((completed_ + 1) & 1)];
  for (const auto& [rank, tag] : before) {
    if (auto taken = fabric_.Taken(rank, tag); !taken) return taken;
  }
  before.clear();
  return {};
}

void Exchange::Begin(std::int64_t completed, bool measured) {
  completed_ = completed;
  measured_ = measured;
  square_ = 0;
  begun_ = false;
  {
    const std::lock_guard lock(mutex_);
    missing_.assign(state_.buckets().size(), buffers_.size());
    working_ = true;
    outcome_ = {};
  }
  news_.notify_all();
}

// The other owners' parts of it are offered from here: the thread may be waiting for somebody.
void Exchange::NodeReady(std::size_t bucket, std::size_t node) {
  for (std::size_t i = 0; i < at_.owners.size(); ++i) {
    const auto part = PartAt(bucket, i);
    if (at_.owners[i] == fabric_.rank() || part.size() == 0) continue;
    const auto values = buffers_[node].subspan(part.first, part.size());
    Offer(at_.owners[i], TagFor(bucket, first_mine_ + node),
          rounds_ ? rounded_[node]->Round(part, values) : std::as_bytes(values));
  }
  {
    const std::lock_guard lock(mutex_);
    if (--missing_[bucket] > 0) return;
  }
  news_.notify_all();
}

void Exchange::Serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    news_.wait(lock, [this] { return working_ || ending_; });
    if (ending_) return;
    lock.unlock();
    auto outcome = Run();
    lock.lock();
    outcome_ = std::move(outcome);
    working_ = false;
    news_.notify_all();
  }
}

Result<void> Exchange::Run() {
  const std::size_t buckets = state_.buckets().size();
  for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
    {
      std::unique_lock lock(mutex_);
      // Somebody may be lost while gradients are computed; then they never come.
      while (missing_[bucket] > 0 && !ending_ && !fabric_.aborted()) {
        news_.wait_for(lock, std::chrono::milliseconds(10));
      }
      if (ending_ || missing_[bucket] > 0)
        return Fail(ErrorCode::kUnavailable, "the step was broken off");
    }
    if (auto reduced = Reduce(bucket); !reduced) return reduced;
    if (bucket == 0) continue;  // the others are behind: their part of the last one comes by itself
    if (auto gathered = Gather(bucket - 1); !gathered) return gathered;
  }
  return buckets == 0 ? Result<void>() : Gather(buckets - 1);
}

void Exchange::SumInto(std::span<const float* const> inputs, std::span<float> out) const {
  if (sums_.empty()) {
    if (inputs[0] != out.data()) std::memcpy(out.data(), inputs[0], out.size_bytes());
    return;
  }
  std::vector<float> between(sums_.size() * kBlock);
  std::vector<const float*> at(inputs.size() + sums_.size());
  for (std::size_t first = 0; first < out.size(); first += kBlock) {
    const std::size_t count = std::min(kBlock, out.size() - first);
    for (std::size_t i = 0; i < inputs.size(); ++i) at[i] = inputs[i] + first;
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      const bool last = i + 1 == sums_.size();
      float* into = last ? out.data() + first : &between[i * kBlock];
      const float* left = at[sums_[i].left];
      const float* right = at[sums_[i].right];
      for (std::size_t k = 0; k < count; ++k) into[k] = left[k] + right[k];
      at[sums_[i].into] = into;
    }
  }
}

// All gradients are there, so everybody has begun the step: nobody will ask for the one before the
// last again, and its memory may be written.
Result<void> Exchange::Reduce(std::size_t bucket) {
  const int me = fabric_.rank();
  const auto own = std::ranges::find(at_.owners, me);
  if (own == at_.owners.end()) return {};
  const auto part = PartAt(bucket, static_cast<std::size_t>(own - at_.owners.begin()));
  if (part.size() == 0) return {};
  std::vector<const float*> inputs;
  inputs.reserve(sources_.size());
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    if (sources_[i].rank == me) {
      inputs.push_back(buffers_[sources_[i].node].data() + part.first);
      continue;
    }
    const auto seen = fabric_.Look(sources_[i].rank, TagFor(bucket, i));
    if (!seen) return tl::unexpected(seen.error());
    if (rounds_) {
      widened_[i].resize(part.size());
      Rounded::Widen(*seen, widened_[i]);
      inputs.push_back(widened_[i].data());
      continue;
    }
    MUSTER_CHECK(seen->size() == part.size() * sizeof(float), "all cut a bucket alike");
    inputs.push_back(reinterpret_cast<const float*>(seen->data()));
  }
  std::span<float> gradient;
  if (buffers_.empty()) {
    scratch_.resize(std::max(scratch_.size(), part.size()));
    gradient = std::span(scratch_).first(part.size());
  } else {  // nobody else reads this part of it
    gradient = buffers_[0].subspan(part.first, part.size());
  }
  SumInto(inputs, gradient);
  if (measured_) square_ += SquareNorm(gradient);
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    if (sources_[i].rank != me) fabric_.Done(sources_[i].rank, TagFor(bucket, i));
  }
  if (fabric_.aborted()) return Fail(ErrorCode::kUnavailable, "the step was broken off");
  if (!std::exchange(begun_, true)) state_.Begin(completed_ + 1);
  const auto& mine = state_.parts().front();
  const auto next = state_.ParametersOf(mine, completed_ + 1, bucket);
  const auto state = state_.StateOf(mine, completed_ + 1, bucket);
  workload_.Update(completed_, gradient, state_.ParametersOf(mine, completed_, bucket),
                   state_.StateOf(mine, completed_, bucket), next, state);
  HandOut(bucket, next, state);
  return {};
}

void Exchange::HandOut(std::size_t bucket, std::span<const float> parameters,
                       std::span<const float> state) {
  const auto to = [&](int rank) {
    if (rank != fabric_.rank()) {
      Offer(rank, TagFor(bucket, sources_.size()), std::as_bytes(parameters));
    }
  };
  for (const int rank : at_.computers) to(rank);
  for (const int rank : mirrors_) {
    if (!at_.Computes(rank)) to(rank);
    if (!state.empty()) Offer(rank, TagFor(bucket, sources_.size() + 1), std::as_bytes(state));
  }
}

// Before anything is written, for one who has not summed anything up by then.
Result<void> Exchange::BeginWhenOffered(int rank, Tag tag) {
  if (begun_) return {};
  if (const auto seen = fabric_.Look(rank, tag); !seen) return tl::unexpected(seen.error());
  state_.Begin(completed_ + 1);
  begun_ = true;
  return {};
}

Result<void> Exchange::Gather(std::size_t bucket) {
  const Tag tag = TagFor(bucket, sources_.size());
  for (std::size_t i = 0; computes_ && i < at_.owners.size(); ++i) {
    const auto part = PartAt(bucket, i);
    if (at_.owners[i] == fabric_.rank() || part.size() == 0) continue;
    if (auto begun = BeginWhenOffered(at_.owners[i], tag); !begun) return begun;
    const auto into = state_.Parameters(completed_ + 1).subspan(part.first, part.size());
    auto fetched = fabric_.Fetch(at_.owners[i], tag, std::as_writable_bytes(into));
    if (!fetched) return fetched;
  }
  for (const auto& part : state_.parts()) {
    if (part.own) continue;
    if (auto fetched = FetchMirrored(part, bucket); !fetched) return fetched;
  }
  return {};
}

Result<void> Exchange::FetchMirrored(const ColumnState::Part& part, std::size_t bucket) {
  const int owner = at_.owners[static_cast<std::size_t>(part.part)];
  const Tag tag = TagFor(bucket, sources_.size());
  const auto parameters = state_.ParametersOf(part, completed_ + 1, bucket);
  const auto state = state_.StateOf(part, completed_ + 1, bucket);
  if (part.with_parameters && !parameters.empty()) {
    if (auto begun = BeginWhenOffered(owner, tag); !begun) return begun;
    auto fetched = fabric_.Fetch(owner, tag, std::as_writable_bytes(parameters));
    if (!fetched) return fetched;
  }
  if (state.empty()) return {};
  if (auto begun = BeginWhenOffered(owner, tag + 1); !begun) return begun;
  return fabric_.Fetch(owner, tag + 1, std::as_writable_bytes(state));
}

Result<void> Exchange::Finish() {
  std::unique_lock lock(mutex_);
  news_.wait(lock, [this] { return !working_; });
  lock.unlock();
  if (!outcome_) return outcome_;
  return Forget();
}

}  // namespace muster::train
