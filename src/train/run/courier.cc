#include "train/run/courier.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"

namespace muster::train {

void Courier::Begin(std::int64_t completed) {
  completed_ = completed;
  here_.clear();
}

Result<void> Courier::Finish() {
  for (const auto& [where, values] : offered_) {
    if (auto taken = fabric_.Taken(where.first, where.second); !taken) return taken;
  }
  offered_.clear();
  return {};
}

void Courier::Take() {
  std::unique_lock lock(mutex_);
  news_.wait(lock, [this] { return free_ > 0; });
  --free_;
}

void Courier::Give() {
  {
    const std::lock_guard lock(mutex_);
    ++free_;
  }
  news_.notify_all();
}

Tag Courier::TagFor(int from, int to, TagKind kind, int shard, int layer) const {
  constexpr int kColumns = 1024;
  return StepTag(completed_, from, kind, static_cast<std::uint64_t>(shard),
                 static_cast<std::uint64_t>(layer) * kColumns + static_cast<std::uint64_t>(to));
}

bool Courier::Await(Tag tag, std::span<float> values) {
  std::unique_lock lock(mutex_);
  ++free_;
  news_.notify_all();
  while (!here_.contains(tag) && !fabric_.aborted()) {
    news_.wait_for(lock, std::chrono::milliseconds(10));
  }
  news_.wait(lock, [this] { return free_ > 0; });
  --free_;
  const auto found = here_.find(tag);
  if (found == here_.end()) return false;
  MUSTER_CHECK(found->second.size() == values.size(), "both cells know the shape");
  std::ranges::copy(found->second, values.begin());
  here_.erase(found);
  return true;
}

void Courier::Cell::Send(int column, TagKind kind, int layer, std::span<const float> values) {
  auto& to = courier_;
  const Tag tag = to.TagFor(column_, column, kind, shard_, layer);
  const int rank = to.layout_.At(column).ComputerOf(shard_);
  std::vector<float> copy(values.begin(), values.end());
  {
    const std::lock_guard lock(to.mutex_);
    auto& place = rank == to.fabric_.rank() ? to.here_[tag] : to.offered_[{rank, tag}];
    place = std::move(copy);
    values = place;
  }
  if (rank == to.fabric_.rank()) {
    to.news_.notify_all();
  } else {
    to.fabric_.Offer(rank, tag, std::as_bytes(values));
  }
}

bool Courier::Cell::Receive(int column, TagKind kind, int layer, std::span<float> values) {
  auto& from = courier_;
  const Tag tag = from.TagFor(column, column_, kind, shard_, layer);
  const int rank = from.layout_.At(column).ComputerOf(shard_);
  if (rank == from.fabric_.rank()) return from.Await(tag, values);
  from.Give();
  const auto fetched = from.fabric_.Fetch(rank, tag, std::as_writable_bytes(values));
  from.Take();
  if (!fetched) from.fabric_.Abort(fetched.error().message);
  return fetched.has_value();
}

}  // namespace muster::train
