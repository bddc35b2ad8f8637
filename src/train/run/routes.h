// Routes: which way gradients of a column go to those who own its parts, and new parameters back.
//
// Inside of a host everybody reads what the others have. Between hosts a part goes once: one worker
// of a host sums up what its host has of the part, as far as the tree of shards goes, and sends
// that; one fetches the new parameters and passes them on. Who does it turns from part to part, so
// that all carry alike; a host with one worker needs nobody in between. So h hosts of w workers
// send S (h-1)/h each way instead of w times that. The additions are those of the tree, whoever
// makes them, so the bits are the same either way. A pure function of the layout.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "train/exact/shard_tree.h"
#include "train/run/layout.h"

namespace muster::train {

// What somebody sums up of a part: from whom, in which order.
struct SumPlan {
  // A gradient that a worker offers: one of its own, or a sum that it carries.
  struct Input {
    int rank = 0;
    bool carried = false;
    std::size_t index = 0;  // of all gradients of the column, or of the sums it carries
    friend bool operator==(const Input&, const Input&) = default;
  };
  struct Sum {
    std::size_t left = 0, right = 0;  // indices of inputs, or past them of sums
  };
  std::vector<Input> inputs;         // from left to right
  std::vector<Sum> sums;             // in this order
  std::vector<std::size_t> results;  // likewise indices; one where it is the whole

  // Of `count` floats; `out`: one for each result. Only the last sum may be written over an input.
  void Run(std::span<const float* const> from, std::span<float* const> out,
           std::size_t count) const;
};

class Routes {
 public:
  // How computers sum up their own shards (shard_program.h), lane by lane.
  struct Rule {
    int shards = 0;
    int lanes = 1;
    bool exact = true;
  };
  Routes(const ColumnLayout& at, std::vector<int> hosts, const Rule& rule);

  std::size_t gradients() const { return gradients_.size(); }  // of all computers
  std::size_t FirstOf(int rank) const;                         // of its gradients
  // To whom a computer gives what it has of a part, and from whom it gets the new parameters: the
  // owner, or the one who carries the part for the host.
  int Towards(std::size_t part, int rank) const;
  // For one who carries the part.
  std::optional<SumPlan> Carried(std::size_t part, int rank) const;
  SumPlan Owned(std::size_t part) const;

 private:
  struct Gradient {
    int rank = 0;
    ShardRange range;
  };
  int HostOf(int rank) const { return hosts_[static_cast<std::size_t>(rank)]; }
  struct Planned {
    SumPlan plan;
    std::vector<ShardRange> left;  // by result
  };
  std::optional<int> Carrier(std::size_t part, int host) const;
  Planned Plan(const std::map<ShardRange, SumPlan::Input>& inputs) const;
  Planned OfHost(int host) const;

  const ColumnLayout& at_;
  std::vector<int> hosts_;  // by rank
  Rule rule_;
  std::vector<Gradient> gradients_;  // from left to right
};

}  // namespace muster::train
