#include "train/collective/collective.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "train/collective/sum.h"

namespace muster::train {
namespace {

constexpr std::size_t kProbeBytes = 256 << 10;  // fits the bounce area
constexpr int kProbeTurns = 5;

double Seconds(std::int64_t since_ns) {
  return static_cast<double>(SystemClock().MonotonicNs() - since_ns) * 1e-9;
}

}  // namespace

Collective::Collective(Fabric& fabric, const CollectiveOptions& options)
    : fabric_(fabric),
      model_(options.model),
      channel_(options.channel),
      members_(options.members > 0 ? options.members : fabric.size()) {}

Result<std::unique_ptr<Collective>> Collective::Open(Fabric& fabric,
                                                     const CollectiveOptions& options) {
  MUSTER_CHECK(options.channel < 0x8000, "a channel has 15 bits");
  std::unique_ptr<Collective> out(new Collective(fabric, options));
  MUSTER_CHECK(fabric.rank() < out->members_, "only members make a collective");
  MUSTER_CHECK(out->members_ <= fabric.size(), "members are of the fabric");
  if (auto learned = out->Kept(out->LearnHosts()); !learned) {
    return tl::unexpected(learned.error());
  }
  return out;
}

Group Collective::NextGroup() {
  Group group{&fabric_, std::vector<int>(static_cast<std::size_t>(members_)),
              static_cast<std::size_t>(fabric_.rank()), 0};
  std::iota(group.ranks.begin(), group.ranks.end(), 0);
  group.base = (Tag{1} << 63U) | (Tag{channel_} << 48U) | ((calls_++ & 0xFFFFFFU) << 24U);
  return group;
}

Result<void> Collective::Kept(Result<void> done) {
  if (!done) fabric_.Abort(done.error().message);
  if (done && fabric_.aborted()) {  // what was looked at may have been withdrawn
    return Fail(ErrorCode::kUnavailable, "the generation was given up during a collective");
  }
  return done;
}

// Each tells the others the first rank that it shares memory with.
Result<void> Collective::LearnHosts() {
  const Group group = NextGroup();
  const auto count = group.size();
  std::int32_t first = 0;
  while (!fabric_.SharesMemory(first)) ++first;
  hosts_.assign(count, first);
  for (std::size_t p = 0; p < count; ++p) {
    if (p == group.me) continue;
    fabric_.Offer(group.at(p), group.base, std::as_bytes(std::span(&first, 1)));
  }
  for (std::size_t p = 0; p < count; ++p) {
    if (p == group.me) continue;
    auto got =
        fabric_.Fetch(group.at(p), group.base, std::as_writable_bytes(std::span(&hosts_[p], 1)));
    if (!got) return got;
  }
  for (std::size_t p = 0; p < count; ++p) {
    if (p == group.me) continue;
    if (auto taken = fabric_.Taken(group.at(p), group.base); !taken) return taken;
  }
  return {};
}

// There and back between two ranks, small and large; the best of a few.
Result<void> Collective::ProbeLink(bool near, int first, int second, LinkCost& cost) {
  const Group group = NextGroup();
  if (fabric_.rank() != first && fabric_.rank() != second) return {};
  const bool leads = fabric_.rank() == first;
  const int other = leads ? second : first;
  std::vector<std::byte> bytes(kProbeBytes);
  std::array<double, 2> best{1e9, 1e9};
  Tag tag = group.base;
  for (int turn = 0; turn < kProbeTurns; ++turn) {
    for (const std::size_t large : {0U, 1U}) {
      const auto sent = std::span(bytes).first(large == 1 ? kProbeBytes : 8);
      const std::int64_t began_ns = SystemClock().MonotonicNs();
      if (leads) fabric_.Offer(other, tag, sent);
      if (auto got = fabric_.Fetch(other, tag, sent); !got) return got;
      if (!leads) fabric_.Offer(other, tag, sent);
      if (leads) best[large] = std::min(best[large], Seconds(began_ns) / 2);
      if (auto taken = fabric_.Taken(other, tag); !taken) return taken;
      ++tag;
    }
  }
  if (!leads) return {};
  cost.message_s = best[0];
  const double copies = near ? 2 : 1;  // into the bounce area too
  cost.byte_s = std::max(best[1] - best[0], 1e-9) / static_cast<double>(kProbeBytes) / copies;
  return {};
}

Result<void> Collective::Probe() {
  const auto neighbour = [&](bool near) {
    for (int rank = 1; rank < members_; ++rank) {
      if ((hosts_[static_cast<std::size_t>(rank)] == hosts_[0]) == near) return rank;
    }
    return -1;
  };
  for (const bool near : {true, false}) {
    const int other = neighbour(near);
    if (other < 0) continue;
    auto probed = Kept(ProbeLink(near, 0, other, near ? model_.near : model_.far));
    if (!probed) return probed;
  }
  if (fabric_.rank() == 0) {
    std::vector<float> a(kProbeBytes / 4), b(kProbeBytes / 4);
    double best = 1e9;
    for (int turn = 0; turn < kProbeTurns; ++turn) {
      const std::int64_t began_ns = SystemClock().MonotonicNs();
      AddTo(a, b.data());
      best = std::min(best, Seconds(began_ns));
    }
    model_.sum_byte_s = best / static_cast<double>(kProbeBytes);
  }
  return Broadcast(std::as_writable_bytes(std::span(&model_, 1)), 0);
}

Result<void> Collective::AllReduce(std::span<float> values, Algorithm algorithm) {
  const Group group = NextGroup();
  if (algorithm == Algorithm::kAuto) algorithm = model_.Pick(values.size_bytes(), hosts_);
  switch (algorithm) {
    case Algorithm::kRing:
      return Kept(AllReduceRing(group, values));
    case Algorithm::kTree:
      return Kept(AllReduceTree(group, values));
    case Algorithm::kHierarchical:
      return Kept(AllReduceHierarchical(group, hosts_, values));
    default:
      return Kept(AllReduceDirect(group, values));
  }
}

Result<void> Collective::AllReduceHalf(std::span<float> values, std::span<float> residual) {
  MUSTER_CHECK(values.size() == residual.size(), "there is a residual for each value");
  return Kept(muster::train::AllReduceHalf(NextGroup(), values, residual));
}
Result<void> Collective::ReduceScatter(std::span<float> values) {
  return Kept(muster::train::ReduceScatter(NextGroup(), values));
}
Result<void> Collective::AllGather(std::span<float> values) {
  return Kept(muster::train::AllGather(NextGroup(), values));
}
Result<void> Collective::Broadcast(std::span<std::byte> bytes, int root) {
  return Kept(muster::train::Broadcast(NextGroup(), bytes, static_cast<std::size_t>(root)));
}
Result<void> Collective::Barrier() { return Kept(muster::train::Barrier(NextGroup())); }

std::span<float> Collective::Part(std::span<float> values, int rank) const {
  return Cut(values, PartOf({0, values.size()}, static_cast<std::size_t>(rank),
                            static_cast<std::size_t>(members_)));
}

}  // namespace muster::train
