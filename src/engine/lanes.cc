#include "engine/lanes.h"

#include <algorithm>

namespace muster::engine {
namespace {

constexpr std::size_t kFewHeads = 256;  // whose queues are listed, instead of asking all queues

}  // namespace

void Lanes::Close() {
  for (const QueueId queue : opened_) {
    lanes_[queue].entries.clear();
    lanes_[queue].filled = false;
    lanes_[queue].best = kNone;
  }
  opened_.clear();
  dead_.assign(cluster_.class_count(), false);
  live_ = cluster_.class_count();
}

void Lanes::Open(const std::function<bool(ClassId)>& may_be_helped) {
  Close();
  std::size_t heads = 0;
  for (ClassId c = 0; c < cluster_.class_count(); ++c) {
    const auto count = cluster_.waiting().OfClass(c).size();
    dead_[c] = !cluster_.waiting().AnyOf(c) || !may_be_helped(c);
    if (dead_[c]) {
      --live_;
    } else {
      heads += count;
    }
  }
  if (heads > kFewHeads) {
    order_.Reset();
    return;
  }
  std::vector<QueueId> queues;
  for (ClassId c = 0; c < cluster_.class_count(); ++c) {
    if (dead_[c]) continue;
    for (const auto& head : cluster_.waiting().OfClass(c)) {
      if (head.job != kNone) queues.push_back(head.queue);
    }
  }
  order_.Reset(queues);
}

void Lanes::Open(std::span<const QueueId> queues,
                 const std::function<bool(const BucketHead&)>& may_claim) {
  Close();
  for (const QueueId queue : queues) {
    Lane& lane = lanes_[queue];
    lane.filled = true;
    opened_.push_back(queue);
    for (const auto& head : cluster_.waiting().OfQueue(queue)) {
      if (head.job != kNone && may_claim(head)) lane.entries.push_back(Entry::Of(head));
    }
  }
  order_.Reset(queues);
}

void Lanes::Fill(QueueId queue) {
  Lane& lane = lanes_[queue];
  lane.filled = true;
  opened_.push_back(queue);
  for (const auto& head : cluster_.waiting().OfQueue(queue)) {
    if (head.job != kNone && !dead_[head.job_class]) lane.entries.push_back(Entry::Of(head));
  }
}

void Lanes::FindBest(Lane& lane) {
  lane.best = kNone;
  for (std::uint32_t i = 0; i < lane.entries.size();) {
    Entry& entry = lane.entries[i];
    if (dead_[entry.job_class] || entry.waiter.job == kNone) {
      entry = lane.entries.back();
      lane.entries.pop_back();
      continue;
    }
    if (lane.best == kNone || entry.waiter.key < lane.entries[lane.best].waiter.key) lane.best = i;
    ++i;
  }
}

const Vec* Lanes::NextCost(QueueId queue) {
  Lane& lane = lanes_[queue];
  if (!lane.filled) Fill(queue);
  FindBest(lane);
  if (lane.best == kNone) return nullptr;
  return &cluster_.job_class(lane.entries[lane.best].job_class).cost;
}

std::optional<Lanes::Head> Lanes::Next() {
  for (;;) {
    if (live_ == 0) return std::nullopt;
    current_ = order_.Next();
    if (current_ == kNone) return std::nullopt;
    const Lane& lane = lanes_[current_];
    const Entry& entry = lane.entries[lane.best];
    if (!dead_[entry.job_class]) return Head{entry.waiter.job, entry.job_class};
    order_.Update(current_);  // its class has died since it was ranked
  }
}

bool Lanes::Exhausted(QueueId queue) const {
  const auto& entries = lanes_[queue].entries;
  return std::all_of(entries.begin(), entries.end(), [this](const Entry& entry) {
    return entry.waiter.job == kNone || dead_[entry.job_class];
  });
}

void Lanes::Advance(Lane& lane, bool whole_bucket) {
  Entry& entry = lane.entries[lane.best];
  if (entry.bucket != kNone && !whole_bucket) {
    const auto waiters = cluster_.waiting().bucket(entry.bucket).waiters();
    if (++entry.cursor < waiters.size()) {
      entry.waiter = waiters[entry.cursor];
      return;
    }
  }
  entry.waiter.job = kNone;
}

void Lanes::Served(const JobState& job) {
  Lane& lane = lanes_[current_];
  const JobId id = lane.entries[lane.best].waiter.job;
  Advance(lane, false);
  if (job.WantsMore()) {
    Entry back;
    back.waiter = {{-job.priority, 1 + job.Surplus(), job.submitted_ms, job.sequence}, id};
    back.job_class = cluster_.ClassOf(id);
    if (dead_.size() <= back.job_class) {
      live_ += back.job_class + 1 - dead_.size();
      dead_.resize(back.job_class + 1, false);
    }
    live_ += dead_[back.job_class] ? 1 : 0;
    dead_[back.job_class] = false;
    lane.entries.push_back(back);
  }
  order_.Update(current_);
}

void Lanes::SkipJob() {
  Advance(lanes_[current_], false);
  order_.Update(current_);
}

void Lanes::SkipEquals() {
  Lane& lane = lanes_[current_];
  const auto& job_class = cluster_.job_class(lane.entries[lane.best].job_class);
  Advance(lane, job_class.exact);
  order_.Update(current_);
}

void Lanes::SkipClass() {
  dead_[lanes_[current_].entries[lanes_[current_].best].job_class] = true;
  --live_;
  order_.Update(current_);
}

}  // namespace muster::engine
