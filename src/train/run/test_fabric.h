// TestFabric: a Fabric of one member that remembers what was offered, for tests.
//
// What peers offer is put there by the test. Only tests include it.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "train/mesh/fabric.h"

namespace muster::train {

class TestFabric final : public Fabric {
 public:
  TestFabric(int rank, int size) : rank_(rank), size_(size) {}

  // From a peer, in the order in which it is fetched.
  template <typename T>
  void Put(int peer, Tag tag, const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    there_[{peer, tag}].emplace_back(bytes.begin(), bytes.end());
  }
  // Offered, and not known to be taken.
  const std::set<std::pair<int, Tag>>& offered() const { return offered_; }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  bool SharesMemory(int /*peer*/) const override { return false; }
  void Offer(int peer, Tag tag, std::span<const std::byte> /*bytes*/) override {
    offered_.insert({peer, tag});
  }
  Result<std::span<const std::byte>> Look(int /*peer*/, Tag /*tag*/) override {
    return Fail(ErrorCode::kInternal, "nobody looks here");
  }
  Result<void> Fetch(int peer, Tag tag, std::span<std::byte> into) override {
    auto& queue = there_[{peer, tag}];
    if (aborted_ || queue.empty() || queue.front().size() != into.size()) {
      return Fail(ErrorCode::kUnavailable, "nothing is there");
    }
    std::ranges::copy(queue.front(), into.begin());
    queue.pop_front();
    return {};
  }
  void Expect(int /*peer*/, Tag /*tag*/, std::span<std::byte> /*into*/) override {}
  void Done(int /*peer*/, Tag /*tag*/) override {}
  Result<void> Taken(int peer, Tag tag) override {
    if (aborted_) return Fail(ErrorCode::kUnavailable, "aborted");
    offered_.erase({peer, tag});
    return {};
  }
  void Release(int /*peer*/) override {}
  void Abort(const std::string& /*why*/) override { aborted_ = true; }
  bool aborted() const override { return aborted_; }

 private:
  int rank_, size_;
  std::map<std::pair<int, Tag>, std::deque<std::vector<std::byte>>> there_;
  std::set<std::pair<int, Tag>> offered_;
  bool aborted_ = false;
};

}  // namespace muster::train
