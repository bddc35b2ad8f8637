#include "train/run/exchange.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "train/compute/noise_scale.h"
#include "train/run/tags.h"

namespace muster::train {

Exchange::Exchange(ColumnState& state, const Workload& workload, Fabric& fabric,
                   const Layout& layout, std::vector<int> hosts, const Routes::Rule& rule,
                   bool half, Arena& arena, std::vector<std::span<float>> buffers,
                   std::vector<std::unique_ptr<Rounded>> rounded)
    : state_(state),
      workload_(workload),
      fabric_(fabric),
      at_(layout.At(state.column())),
      computes_(at_.Computes(fabric.rank())),
      mirrors_(layout.MirrorsOf(fabric.rank())),
      buffers_(std::move(buffers)),
      rounded_(std::move(rounded)),
      rounds_(half),
      routes_(at_, std::move(hosts), rule),
      first_mine_(routes_.FirstOf(fabric.rank())) {
  const auto own = std::ranges::find(at_.owners, fabric.rank());
  if (own != at_.owners.end()) {
    part_ = static_cast<std::size_t>(own - at_.owners.begin());
    owned_ = routes_.Owned(*part_);
  }
  PlanToCarry(half, arena);
  thread_ = std::thread([this] { Serve(); });
}

// Nobody else reads the gradient of this worker where it carries: a single sum goes there.
void Exchange::PlanToCarry(bool half, Arena& arena) {
  for (std::size_t part = 0; computes_ && part < at_.owners.size(); ++part) {
    auto plan = routes_.Carried(part, fabric_.rank());
    if (!plan) continue;
    carries_.push_back(part);
    carried_ = std::move(*plan);  // the same for each
  }
  const std::size_t results = carried_.results.size();
  if (results == 1) carried_to_.push_back(buffers_[0]);
  if (results > 1) sums_.assign(results, std::vector<float>(state_.floats()));
  for (auto& sum : sums_) carried_to_.emplace_back(sum);
  for (std::size_t i = 0; half && i < results; ++i) {
    carried_rounded_.push_back(std::make_unique<Rounded>(state_.floats(), arena));
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

// Each is used once in a step between two workers.
Tag Exchange::TagFor(std::size_t bucket, std::size_t part, What what, std::size_t index) const {
  const std::size_t each = 2 * routes_.gradients() + 2;  // a host has no more sums than gradients
  std::size_t place = index;
  if (what == What::kSum) place += routes_.gradients();
  if (what == What::kParameters) place = each - 2;
  if (what == What::kState) place = each - 1;
  return StepTag(completed_, state_.column(), TagKind::kExchange, bucket, part * each + place);
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

void Exchange::Begin(const UpdateStep& step, bool measured, bool summed) {
  summed_ = summed;
  step_ = step;
  completed_ = step.completed;
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

// What others sum up is offered from here: the thread may be waiting for somebody.
void Exchange::NodeReady(std::size_t bucket, std::size_t node) {
  const int me = fabric_.rank();
  for (std::size_t i = 0; !summed_ && i < at_.owners.size(); ++i) {
    const auto part = PartAt(bucket, i);
    const bool carries = std::ranges::find(carries_, i) != carries_.end();
    if (at_.owners[i] == me || carries || part.size() == 0) continue;
    const int towards = routes_.Towards(i, me);
    const bool rounds = rounds_ && towards == at_.owners[i];
    const auto values = buffers_[node].subspan(part.first, part.size());
    Offer(towards, TagFor(bucket, i, What::kGradient, first_mine_ + node),
          rounds ? rounded_[node]->Round(part, values) : std::as_bytes(values));
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
    for (std::size_t i = 0; !summed_ && i < carries_.size(); ++i) {
      if (auto carried = Carry(bucket, carries_[i]); !carried) return carried;
    }
    if (auto reduced = Reduce(bucket); !reduced) return reduced;
    if (bucket == 0) continue;  // the others are behind: their part of the last one comes by itself
    if (auto gathered = Gather(bucket - 1); !gathered) return gathered;
  }
  return buckets == 0 ? Result<void>() : Gather(buckets - 1);
}

// `index`: of the part.
Result<void> Exchange::SumUp(const SumPlan& plan, std::size_t bucket, std::size_t index,
                             Extent part, std::span<float* const> out) {
  const int me = fabric_.rank();
  const bool owns = at_.owners[index] == me;
  std::vector<const float*> inputs;
  inputs.reserve(plan.inputs.size());
  widened_.resize(rounds_ ? std::max(widened_.size(), plan.inputs.size()) : 0);
  const auto tag_of = [&](const SumPlan::Input& input) {
    return TagFor(bucket, index, input.carried ? What::kSum : What::kGradient, input.index);
  };
  for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
    const auto& input = plan.inputs[i];
    if (input.rank == me) {
      inputs.push_back(buffers_[input.index - first_mine_].data() + part.first);
      continue;
    }
    const auto seen = fabric_.Look(input.rank, tag_of(input));
    if (!seen) return tl::unexpected(seen.error());
    if (rounds_ && owns) {
      widened_[i].resize(part.size());
      Rounded::Widen(*seen, widened_[i]);
      inputs.push_back(widened_[i].data());
      continue;
    }
    MUSTER_CHECK(seen->size() == part.size() * sizeof(float), "all cut a bucket alike");
    inputs.push_back(reinterpret_cast<const float*>(seen->data()));
  }
  plan.Run(inputs, out, part.size());
  for (const auto& input : plan.inputs) {
    if (input.rank != me) fabric_.Done(input.rank, tag_of(input));
  }
  if (fabric_.aborted()) return Fail(ErrorCode::kUnavailable, "the step was broken off");
  return {};
}

// The sums lie where they are until the owner has used them, which it has before the new parameters
// come back.
Result<void> Exchange::Carry(std::size_t bucket, std::size_t index) {
  const auto part = PartAt(bucket, index);
  if (part.size() == 0) return {};
  std::vector<float*> out;
  out.reserve(carried_to_.size());
  for (const auto sum : carried_to_) out.push_back(sum.data() + part.first);
  if (auto summed = SumUp(carried_, bucket, index, part, out); !summed) return summed;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::span values(out[i], part.size());
    Offer(at_.owners[index], TagFor(bucket, index, What::kSum, i),
          rounds_ ? carried_rounded_[i]->Round(part, values) : std::as_bytes(values));
  }
  return {};
}

// All gradients are there, so everybody has begun the step: nobody will ask for the one before the
// last again, and its memory may be written.
Result<void> Exchange::Reduce(std::size_t bucket) {
  if (!part_) return {};
  const auto part = PartAt(bucket, *part_);
  if (part.size() == 0) return {};
  std::span<float> gradient;
  if (buffers_.empty()) {
    scratch_.resize(std::max(scratch_.size(), part.size()));
    gradient = std::span(scratch_).first(part.size());
  } else {  // nobody else reads this part of it
    gradient = buffers_[0].subspan(part.first, part.size());
  }
  float* const out = gradient.data();
  if (!summed_) {
    auto summed = SumUp(owned_, bucket, *part_, part, std::span(&out, 1));
    if (!summed) return summed;
  }
  if (measured_) square_ += SquareNorm(gradient);
  if (!std::exchange(begun_, true)) state_.Begin(step_.last());
  const auto& mine = state_.parts().front();
  const auto next = state_.ParametersOf(mine, step_.last(), bucket);
  const auto state = state_.StateOf(mine, step_.last(), bucket);
  workload_.Update(step_, gradient, state_.ParametersOf(mine, completed_, bucket),
                   state_.StateOf(mine, completed_, bucket), next, state);
  HandOut(bucket, *part_, next);
  HandToMirrors(bucket, *part_, next, state);
  return {};
}

// To those who get them from here.
void Exchange::HandOut(std::size_t bucket, std::size_t part, std::span<const float> parameters) {
  for (const int rank : at_.computers) {
    if (rank == fabric_.rank() || routes_.Towards(part, rank) != fabric_.rank()) continue;
    Offer(rank, TagFor(bucket, part, What::kParameters), std::as_bytes(parameters));
  }
}

void Exchange::HandToMirrors(std::size_t bucket, std::size_t part,
                             std::span<const float> parameters, std::span<const float> state) {
  for (const int rank : mirrors_) {
    if (!at_.Computes(rank)) {
      Offer(rank, TagFor(bucket, part, What::kParameters), std::as_bytes(parameters));
    }
    if (!state.empty()) Offer(rank, TagFor(bucket, part, What::kState), std::as_bytes(state));
  }
}

// Before anything is written, for one who has not summed anything up by then.
Result<void> Exchange::BeginWhenOffered(int rank, Tag tag) {
  if (begun_) return {};
  if (const auto seen = fabric_.Look(rank, tag); !seen) return tl::unexpected(seen.error());
  state_.Begin(step_.last());
  begun_ = true;
  return {};
}

Result<void> Exchange::Gather(std::size_t bucket) {
  for (std::size_t i = 0; computes_ && i < at_.owners.size(); ++i) {
    const auto part = PartAt(bucket, i);
    if (at_.owners[i] == fabric_.rank() || part.size() == 0) continue;
    const int from = routes_.Towards(i, fabric_.rank());
    const Tag tag = TagFor(bucket, i, What::kParameters);
    if (auto begun = BeginWhenOffered(from, tag); !begun) return begun;
    const auto into = state_.Parameters(step_.last()).subspan(part.first, part.size());
    auto fetched = fabric_.Fetch(from, tag, std::as_writable_bytes(into));
    if (!fetched) return fetched;
    HandOut(bucket, i, into);
  }
  for (const auto& part : state_.parts()) {
    if (part.own) continue;
    if (auto fetched = FetchMirrored(part, bucket); !fetched) return fetched;
  }
  return {};
}

Result<void> Exchange::FetchMirrored(const ColumnState::Part& part, std::size_t bucket) {
  const auto index = static_cast<std::size_t>(part.part);
  const int owner = at_.owners[index];
  const auto parameters = state_.ParametersOf(part, step_.last(), bucket);
  const auto state = state_.StateOf(part, step_.last(), bucket);
  if (part.with_parameters && !parameters.empty()) {
    const Tag tag = TagFor(bucket, index, What::kParameters);
    if (auto begun = BeginWhenOffered(owner, tag); !begun) return begun;
    auto fetched = fabric_.Fetch(owner, tag, std::as_writable_bytes(parameters));
    if (!fetched) return fetched;
  }
  if (state.empty()) return {};
  const Tag tag = TagFor(bucket, index, What::kState);
  if (auto begun = BeginWhenOffered(owner, tag); !begun) return begun;
  return fabric_.Fetch(owner, tag, std::as_writable_bytes(state));
}

Result<void> Exchange::Finish() {
  std::unique_lock lock(mutex_);
  news_.wait(lock, [this] { return !working_; });
  lock.unlock();
  if (!outcome_) return outcome_;
  return Forget();
}

}  // namespace muster::train
