#include "engine/queues.h"

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "base/wide.h"
#include "model/vocabulary.h"

namespace muster::engine {
namespace {

bool IsHostName(const std::string& name) {
  return name == "gpus" || name == "cpus" || name == "memory";
}

std::int64_t Named(const model::Amounts& amounts, const std::string& name, std::int64_t fallback) {
  const auto found = amounts.find(name);
  return found == amounts.end() ? fallback : found->second;
}

}  // namespace

std::vector<model::Queue> UnderPolicy(std::vector<model::Queue> queues, const Policy& policy) {
  const auto is_type = [](const auto& amount) { return model::IsGpuTypeName(amount.first); };
  for (auto& queue : queues) {
    if (!policy.limits) queue.limit.clear();
    if (!policy.queue_priority) queue.priority = model::Queue{}.priority;
    if (!policy.min_runtime) queue.reclaim_min_runtime_ms = queue.preempt_min_runtime_ms = 0;
    if (policy.quota_by_type) continue;
    for (auto* amounts : {&queue.quota, &queue.limit, &queue.weight}) {
      std::erase_if(*amounts, is_type);
    }
  }
  return queues;
}

Result<QueueTable> QueueTable::Make(std::span<const model::Queue> queues,
                                    std::span<const std::string> countables) {
  QueueTable table;
  table.AddDims(queues, countables);
  if (table.dims() > kMaxDims) {
    return Fail(ErrorCode::kInvalid,
                "queues name " + std::to_string(table.dims()) + " kinds of resources",
                "at most " + std::to_string(kMaxDims) + " can be shared out");
  }
  table.states_.resize(queues.size() + 1);
  table.specs_.resize(queues.size() + 1);
  for (std::size_t i = 0; i < queues.size(); ++i) {
    const auto id = static_cast<QueueId>(i + 1);
    table.specs_[id] = queues[i];
    if (!table.by_name_.emplace(queues[i].name, id).second) {
      return Fail(ErrorCode::kInvalid, "queue " + queues[i].name + " is defined twice");
    }
  }
  for (QueueId id = 1; id < table.states_.size(); ++id) {
    const auto& spec = table.specs_[id];
    const QueueId parent = spec.parent.empty() ? 0 : table.Find(spec.parent);
    if (parent == kNone || parent == id) {
      return Fail(ErrorCode::kInvalid, "queue " + spec.name + " has no parent " + spec.parent,
                  "define the parent in the same file");
    }
    table.states_[id].parent = parent;
    table.states_[parent].children.push_back(id);
  }
  auto& order = table.widest_first_;
  order = {0};
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const QueueId child : table.states_[order[i]].children) {
      table.states_[child].depth = table.states_[order[i]].depth + 1;
      order.push_back(child);
    }
  }
  if (order.size() != table.states_.size()) {
    return Fail(ErrorCode::kInvalid, "the queue tree has a circle", "a queue is its own ancestor");
  }
  for (const QueueId id : order) table.FillAmounts(id);
  for (auto id = order.rbegin(); id != order.rend(); ++id) table.FillUnnamedTypeQuotas(*id);
  return table;
}

void QueueTable::AddDims(std::span<const model::Queue> queues,
                         std::span<const std::string> countables) {
  dim_names_ = {"gpus", "cpus", "memory"};
  const auto is_countable = [&](const std::string& name) {
    return std::find(countables.begin(), countables.end(), name) != countables.end();
  };
  for (const auto& queue : queues) {
    for (const auto* amounts : {&queue.quota, &queue.limit, &queue.weight}) {
      for (const auto& [name, value] : *amounts) {
        if (!IsHostName(name) && !is_countable(name) && FindDim(name) == dims()) {
          dim_names_.push_back(name);
        }
      }
    }
  }
  first_countable_ = dims();
  dim_names_.insert(dim_names_.end(), countables.begin(), countables.end());
}

void QueueTable::FillAmounts(QueueId id) {
  QueueState& state = states_[id];
  const model::Queue& spec = specs_[id];
  state.priority = spec.priority;
  state.created_order = spec.created_order;
  for (std::size_t d = 0; d < dims(); ++d) {
    const auto& name = dim_names_[d];
    const bool gpus = d == kGpuDim || (d >= kFirstNamedDim && d < first_countable_);
    const auto general = d == kGpuDim || !gpus
                             ? spec.general_weight_milli
                             : Named(spec.weight, "gpus", spec.general_weight_milli);
    state.quota[d] = id == 0 ? kUnlimited : Named(spec.quota, name, gpus ? 0 : kUnlimited);
    state.limit[d] = Named(spec.limit, name, kUnlimited);
    state.weight[d] = Named(spec.weight, name, general);
    state.limited |= state.limit[d] != kUnlimited;
  }
  if (id != 0) state.limited |= states_[state.parent].limited;
}

// A parent that does not name a GPU type guarantees what its children name together.
void QueueTable::FillUnnamedTypeQuotas(QueueId id) {
  if (id == 0 || states_[id].children.empty()) return;
  for (std::size_t d = kFirstNamedDim; d < first_countable_; ++d) {
    if (specs_[id].quota.contains(dim_names_[d])) continue;
    std::int64_t sum = 0;
    for (const QueueId child : states_[id].children) {
      const auto quota = states_[child].quota[d];
      sum = quota == kUnlimited || sum == kUnlimited ? kUnlimited : sum + quota;
    }
    states_[id].quota[d] = sum;
  }
}

QueueId QueueTable::Find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? kNone : found->second;
}

std::size_t QueueTable::FindDim(const std::string& name) const {
  return static_cast<std::size_t>(std::find(dim_names_.begin(), dim_names_.end(), name) -
                                  dim_names_.begin());
}

void QueueTable::AddHeld(QueueId leaf, const Vec& cost, bool fixed, int sign) {
  for (QueueId q = leaf; q != kNone; q = states_[q].parent) {
    auto& state = states_[q];
    for (std::size_t d = 0; d < dims(); ++d) {
      state.held[d] += sign * cost[d];
      if (fixed) state.fixed[d] += sign * cost[d];
    }
  }
}

void QueueTable::Keep(QueueId queue, const Vec& room, bool fixed, int sign) {
  auto& state = states_[queue];
  for (std::size_t d = 0; d < dims(); ++d) {
    state.kept[d] += sign * room[d];
    if (fixed) state.kept_fixed[d] += sign * room[d];
  }
}

void QueueTable::AddRequest(QueueId leaf, const Vec& cost, int sign) {
  for (QueueId q = leaf; q != kNone; q = states_[q].parent) {
    for (std::size_t d = 0; d < dims(); ++d) states_[q].request[d] += sign * cost[d];
    states_[q].stale = true;
  }
}

void QueueTable::SetPastUse(QueueId id, std::int64_t gpu_ms) {
  states_[id].past_use = gpu_ms;
  if (id != 0) states_[states_[id].parent].stale = true;
}

bool QueueTable::WithinLimits(QueueId leaf, const Vec& adds) const {
  for (QueueId q = leaf; q != kNone && states_[q].limited; q = states_[q].parent) {
    if (!StaysWithin(states_[q].held, states_[q].kept, adds, states_[q].limit, dims()))
      return false;
  }
  return true;
}

bool QueueTable::WithinFixedQuota(QueueId leaf, const Vec& adds) const {
  for (QueueId q = leaf; q != 0; q = states_[q].parent) {
    if (!StaysWithin(states_[q].fixed, states_[q].kept_fixed, adds, states_[q].quota, dims()))
      return false;
  }
  return true;
}

bool QueueTable::HeldWithinBounds(QueueId leaf, const Vec& of, bool fixed) const {
  for (QueueId q = leaf; q != 0; q = states_[q].parent) {
    const QueueState& queue = states_[q];
    for (std::size_t d = 0; d < dims(); ++d) {
      // Which GPU type a piece takes may be open, so any of them counts for it.
      const bool typed = d >= kFirstNamedDim && d < first_countable_;
      if (of[typed ? kGpuDim : d] == 0) continue;
      if (queue.held[d] + queue.kept[d] > queue.limit[d]) return false;
      if (fixed && queue.fixed[d] + queue.kept_fixed[d] > queue.quota[d]) return false;
    }
  }
  return true;
}

bool QueueTable::IsBelow(QueueId queue, QueueId top) const {
  while (queue != 0 && queue != top) queue = states_[queue].parent;
  return queue == top;
}

std::pair<QueueId, QueueId> QueueTable::Part(QueueId a, QueueId b) const {
  while (states_[a].depth > states_[b].depth) a = states_[a].parent;
  while (states_[b].depth > states_[a].depth) b = states_[b].parent;
  while (a != b && states_[a].parent != states_[b].parent) {
    a = states_[a].parent;
    b = states_[b].parent;
  }
  return {a, b};
}

void QueueTable::DivideShares(const Vec& total, std::int64_t strength_milli) {
  const bool all = strength_milli_ != strength_milli;
  strength_milli_ = strength_milli;
  states_[0].stale |= states_[0].share != total;
  states_[0].share = total;
  for (const QueueId parent : widest_first_) {
    if (!std::exchange(states_[parent].stale, false) && !all) continue;
    if (states_[parent].children.empty()) continue;
    WeighPastUse(states_[parent], strength_milli);
    for (std::size_t d = 0; d < dims(); ++d) DivideAmong(parent, d, states_[parent].share[d]);
  }
}

// Weight times (1 + strength * (fair part - used part)), parts of the siblings' sum in thousandths:
// who used more than its part of the past weighs less until the past has decayed.
void QueueTable::WeighPastUse(const QueueState& parent, std::int64_t strength_milli) {
  pulled_.clear();
  if (strength_milli == 0) return;
  std::int64_t use = 0, weight = 0;
  for (const QueueId child : parent.children) {
    use += states_[child].past_use;
    weight += states_[child].weight[kGpuDim];
  }
  if (use == 0 || weight == 0) return;
  for (const QueueId child : parent.children) {
    const auto fair = static_cast<Wide>(states_[child].weight[kGpuDim]) * kMilli / weight;
    const auto used = static_cast<Wide>(states_[child].past_use) * kMilli / use;
    const auto factor = kMilli + (fair - used) * strength_milli / kMilli;
    pulled_.push_back(static_cast<std::int64_t>(std::max<Wide>(factor, 1)));
  }
}

void QueueTable::DivideAmong(QueueId parent, std::size_t dim, std::int64_t total) {
  const auto& children = states_[parent].children;
  claims_.clear();
  for (std::size_t i = 0; i < children.size(); ++i) {
    const QueueState& child = states_[children[i]];
    const auto pull = pulled_.empty() ? kMilli : pulled_[i];
    claims_.push_back({.quota = child.quota[dim],
                       .limit = child.limit[dim],
                       .weight = child.weight[dim] * pull,
                       .request = child.request[dim],
                       .priority = child.priority,
                       .created_order = child.created_order,
                       .share = 0});
  }
  const bool gpus = dim == kGpuDim || (dim >= kFirstNamedDim && dim < first_countable_);
  divider_.Divide(total, gpus ? kMilli : 1, claims_);
  for (std::size_t i = 0; i < children.size(); ++i) {
    QueueState& child = states_[children[i]];
    child.stale |= child.share[dim] != claims_[i].share;
    shares_changed_ |= child.share[dim] != claims_[i].share;
    child.share[dim] = claims_[i].share;
    child.guaranteed[dim] = child.quota[dim] == kUnlimited ? total : child.quota[dim];
    child.entitled[dim] =
        std::min(child.limit[dim], std::max(child.guaranteed[dim], child.share[dim]));
  }
}

}  // namespace muster::engine
