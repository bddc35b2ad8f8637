#include "train/run/routes.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "base/check.h"
#include "train/exact/shard_program.h"

namespace muster::train {

namespace {

constexpr std::size_t kBlock = 2048;  // floats that are summed at once: they stay in the cache

}  // namespace

void SumPlan::Run(std::span<const float* const> from, std::span<float* const> out,
                  std::size_t count) const {
  std::vector<float> between(sums.size() * kBlock);
  std::vector<const float*> at(inputs.size() + sums.size());
  std::vector<float*> result(at.size());
  for (std::size_t i = 0; i < results.size(); ++i) result[results[i]] = out[i];
  for (std::size_t first = 0; first < count; first += kBlock) {
    const std::size_t length = std::min(kBlock, count - first);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      at[i] = from[i] + first;
      if (result[i] != nullptr && result[i] != from[i]) {
        std::memcpy(result[i] + first, at[i], length * sizeof(float));
      }
    }
    for (std::size_t i = 0; i < sums.size(); ++i) {
      float* const whole = result[inputs.size() + i];
      float* into = whole != nullptr ? whole + first : &between[i * kBlock];
      const float* left = at[sums[i].left];
      const float* right = at[sums[i].right];
      for (std::size_t k = 0; k < length; ++k) into[k] = left[k] + right[k];
      at[inputs.size() + i] = into;
    }
  }
}

Routes::Routes(const ColumnLayout& at, std::vector<int> hosts, const Rule& rule)
    : at_(at), hosts_(std::move(hosts)), rule_(rule) {
  for (std::size_t i = 0; i < at.computers.size(); ++i) {
    for (const auto& run : LaneRuns(at.runs[i], rule.lanes)) {
      for (const auto& node : ProgramFor(run, rule.shards, rule.exact).nodes) {
        gradients_.push_back({at.computers[i], node.range});
      }
    }
  }
}

std::size_t Routes::FirstOf(int rank) const {
  const auto first = std::ranges::find(gradients_, rank, &Gradient::rank);
  return static_cast<std::size_t>(first - gradients_.begin());
}

// Of a host that does not have the owner.
std::optional<int> Routes::Carrier(std::size_t part, int host) const {
  std::vector<int> workers;
  for (const int rank : at_.computers) {
    if (HostOf(rank) == host) workers.push_back(rank);
  }
  if (workers.size() < 2) return std::nullopt;
  return workers[part % workers.size()];
}

int Routes::Towards(std::size_t part, int rank) const {
  const int owner = at_.owners[part];
  if (HostOf(rank) == HostOf(owner)) return owner;
  const auto carrier = Carrier(part, HostOf(rank));
  return !carrier || *carrier == rank ? owner : *carrier;
}

Routes::Planned Routes::Plan(const std::map<ShardRange, SumPlan::Input>& inputs) const {
  Planned out;
  std::map<ShardRange, std::size_t> index;
  std::vector<ShardRange> nodes;
  for (const auto& [range, input] : inputs) {
    index[range] = nodes.size();
    nodes.push_back(range);
    out.plan.inputs.push_back(input);
  }
  auto& sums = out.plan.sums;
  if (rule_.exact) {
    auto over = SumsOver(nodes, rule_.shards);
    for (const auto& sum : over.sums) {
      index[sum.node] = nodes.size() + sums.size();
      sums.push_back({index.at(sum.left), index.at(sum.right)});
    }
    out.left = std::move(over.left);
    for (const auto& node : out.left) out.plan.results.push_back(index.at(node));
    return out;
  }
  std::size_t sum = 0;
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    sums.push_back({sum, i});
    sum = nodes.size() + sums.size() - 1;
  }
  out.left = {nodes.front()};
  out.plan.results = {sum};
  return out;
}

Routes::Planned Routes::OfHost(int host) const {
  std::map<ShardRange, SumPlan::Input> inputs;
  for (std::size_t i = 0; i < gradients_.size(); ++i) {
    const auto& gradient = gradients_[i];
    if (HostOf(gradient.rank) == host) inputs[gradient.range] = {gradient.rank, false, i};
  }
  return Plan(inputs);
}

std::optional<SumPlan> Routes::Carried(std::size_t part, int rank) const {
  const int host = HostOf(rank);
  if (host == HostOf(at_.owners[part]) || Carrier(part, host) != rank) return std::nullopt;
  return OfHost(host).plan;
}

SumPlan Routes::Owned(std::size_t part) const {
  std::map<ShardRange, SumPlan::Input> inputs;
  std::set<int> carried;
  for (std::size_t i = 0; i < gradients_.size(); ++i) {
    const auto& gradient = gradients_[i];
    const int host = HostOf(gradient.rank);
    const auto carrier =
        host == HostOf(at_.owners[part]) ? std::optional<int>() : Carrier(part, host);
    if (!carrier) {
      inputs[gradient.range] = {gradient.rank, false, i};
    } else if (carried.insert(host).second) {
      const auto left = OfHost(host).left;
      for (std::size_t k = 0; k < left.size(); ++k) inputs[left[k]] = {*carrier, true, k};
    }
  }
  auto out = Plan(inputs).plan;
  MUSTER_CHECK(out.results.size() == 1, "the gradients of all make the whole");
  return out;
}

}  // namespace muster::train
