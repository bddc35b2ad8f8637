#include <algorithm>

#include "train/collective/algorithms.h"
#include "train/collective/half.h"
#include "train/collective/sum.h"

namespace muster::train {
namespace {

// One after the other, each beginning behind oneself, so that not all ask the same at once.
template <typename Call>
Result<void> ForPeers(const Group& group, const Call& call) {
  for (std::size_t i = 1; i < group.size(); ++i) {
    Result<void> done = call((group.me + i) % group.size());
    if (!done) return done;
  }
  return {};
}

Result<void> AwaitTaken(const Group& group, Tag tag) {
  return ForPeers(group, [&](std::size_t p) { return group.fabric->Taken(group.at(p), tag); });
}

void OfferToAll(const Group& group, Tag tag, std::span<const std::byte> bytes) {
  for (std::size_t i = 1; i < group.size(); ++i) {
    group.fabric->Offer(group.at((group.me + i) % group.size()), tag, bytes);
  }
}

// What every member holds of this member's part, in the order of the group; this one's own among
// them. Looked at under the first tag.
Result<std::vector<const float*>> LookAtAll(const Group& group, std::span<float> values) {
  const Stretch whole{0, values.size()};
  for (std::size_t i = 1; i < group.size(); ++i) {
    const std::size_t p = (group.me + i) % group.size();
    group.fabric->Offer(group.at(p), group.base,
                        std::as_bytes(Cut(values, PartOf(whole, p, group.size()))));
  }
  const Stretch mine = PartOf(whole, group.me, group.size());
  std::vector<const float*> parts(group.size());
  for (std::size_t p = 0; p < group.size(); ++p) {
    if (p == group.me) {
      parts[p] = values.data() + mine.from;
      continue;
    }
    const auto seen = group.fabric->Look(group.at(p), group.base);
    if (!seen) return tl::unexpected(seen.error());
    if (seen->size() != mine.size() * sizeof(float)) {
      return Fail(ErrorCode::kInternal, "members reduce values of different lengths");
    }
    parts[p] = Floats(*seen);
  }
  return parts;
}

void SumMine(const Group& group, std::span<float> values, const std::vector<const float*>& parts) {
  SumOf(Cut(values, PartOf({0, values.size()}, group.me, group.size())), parts);
  for (std::size_t p = 0; p < group.size(); ++p) {
    if (p != group.me) group.fabric->Done(group.at(p), group.base);
  }
}

// What a peer has just summed is copied from its end on: that is still in a cache.
Result<void> FetchPart(const Group& group, std::size_t peer, Tag tag, std::span<float> into) {
  Fabric& fabric = *group.fabric;
  const int rank = group.at(peer);
  if (!fabric.SharesMemory(rank)) return fabric.Fetch(rank, tag, std::as_writable_bytes(into));
  const auto seen = fabric.Look(rank, tag);
  if (!seen) return tl::unexpected(seen.error());
  if (seen->size() != into.size_bytes()) {
    return Fail(ErrorCode::kInternal, "members gather values of different lengths");
  }
  CopyFromEnd(into, Floats(*seen));
  fabric.Done(rank, tag);
  return {};
}

Result<void> Gather(const Group& group, Tag tag, std::span<float> values) {
  const auto part = [&](std::size_t p) {
    return Cut(values, PartOf({0, values.size()}, p, group.size()));
  };
  OfferToAll(group, tag, std::as_bytes(part(group.me)));
  auto fetched = ForPeers(group, [&](std::size_t p) { return FetchPart(group, p, tag, part(p)); });
  if (!fetched) return fetched;
  return AwaitTaken(group, tag);
}

}  // namespace

// Few meetings: each waits twice for the others, whatever the size. Cutting parts into chunks, to
// fetch while others still sum, lost: a peer that is not running right now is waited for each time.
// What a peer holds of this member's part is not read again once its sum is offered, so the peer
// may overwrite it by then.
Result<void> AllReduceDirect(const Group& group, std::span<float> values) {
  if (group.size() == 1 || values.empty()) return {};
  const auto parts = LookAtAll(group, values);
  if (!parts) return tl::unexpected(parts.error());
  SumMine(group, values, *parts);
  if (auto gathered = Gather(group, group.base + 1, values); !gathered) return gathered;
  return AwaitTaken(group, group.base);
}

Result<void> ReduceScatter(const Group& group, std::span<float> values) {
  if (group.size() == 1 || values.empty()) return {};
  const auto parts = LookAtAll(group, values);
  if (!parts) return tl::unexpected(parts.error());
  SumMine(group, values, *parts);
  return AwaitTaken(group, group.base);
}

Result<void> AllGather(const Group& group, std::span<float> values) {
  if (group.size() == 1 || values.empty()) return {};
  return Gather(group, group.base, values);
}

// As direct, in 16 bits: what is sent is rounded, and what rounding took stays behind for the next
// time. Everybody, the one who summed a part too, takes the rounded sum.
Result<void> AllReduceHalf(const Group& group, std::span<float> values, std::span<float> residual) {
  if (group.size() == 1 || values.empty()) return {};
  const Stretch whole{0, values.size()};
  std::vector<std::uint16_t> halves(values.size());
  std::vector<float> rounded;
  const auto round = [&](Stretch part) {
    const auto from = Cut(values, part), rest = Cut(residual, part);
    AddTo(from, rest.data());
    const std::span into(halves.data() + part.from, part.size());
    ToHalf(from, into.data());
    rounded.resize(part.size());
    FromHalf(into, rounded.data());
    for (std::size_t i = 0; i < part.size(); ++i) rest[i] = from[i] - rounded[i];
    return std::as_bytes(into);
  };
  for (std::size_t i = 1; i < group.size(); ++i) {
    const std::size_t p = (group.me + i) % group.size();
    group.fabric->Offer(group.at(p), group.base, round(PartOf(whole, p, group.size())));
  }
  const Stretch part = PartOf(whole, group.me, group.size());
  const auto mine = Cut(values, part);
  std::vector<float> theirs(mine.size());
  std::vector<std::uint16_t> got(mine.size());
  for (std::size_t p = 0; p < group.size(); ++p) {
    if (p == group.me) continue;
    auto seen =
        group.fabric->Fetch(group.at(p), group.base, std::as_writable_bytes(std::span(got)));
    if (!seen) return seen;
    FromHalf(got, theirs.data());
    AddTo(mine, theirs.data());
  }
  OfferToAll(group, group.base + 1, round(part));
  std::ranges::copy(rounded, mine.begin());
  auto fetched = ForPeers(group, [&](std::size_t p) {
    const auto into = Cut(values, PartOf(whole, p, group.size()));
    got.resize(into.size());
    auto done =
        group.fabric->Fetch(group.at(p), group.base + 1, std::as_writable_bytes(std::span(got)));
    if (done) FromHalf(got, into.data());
    return done;
  });
  if (!fetched) return fetched;
  if (auto taken = AwaitTaken(group, group.base); !taken) return taken;
  return AwaitTaken(group, group.base + 1);
}

}  // namespace muster::train
