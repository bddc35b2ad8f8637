#include <algorithm>

#include "train/collective/algorithms.h"
#include "train/collective/sum.h"

namespace muster::train {
namespace {

constexpr std::size_t kChunkBytes = 1 << 20;
constexpr std::size_t kMostChunks = 16;

std::span<std::byte> Piece(std::span<std::byte> bytes, std::size_t c, std::size_t chunks) {
  const Stretch part = PartOf({0, bytes.size()}, c, chunks);
  return bytes.subspan(part.from, part.size());
}

}  // namespace

// Binomial: in the round of a bit, who has it set gives its sum to the one without it and is done.
Result<void> AllReduceTree(const Group& group, std::span<float> values) {
  const std::size_t n = group.size();
  if (n == 1 || values.empty()) return {};
  Fabric& fabric = *group.fabric;
  for (std::size_t bit = 1; bit < n; bit *= 2) {
    if ((group.me & bit) != 0) {
      const int parent = group.at(group.me - bit);
      fabric.Offer(parent, group.base, std::as_bytes(values));
      if (auto taken = fabric.Taken(parent, group.base); !taken) return taken;
      break;
    }
    if (group.me + bit >= n) continue;
    const int child = group.at(group.me + bit);
    const auto seen = fabric.Look(child, group.base);
    if (!seen) return tl::unexpected(seen.error());
    if (seen->size() != values.size_bytes()) {
      return Fail(ErrorCode::kInternal, "members reduce values of different lengths");
    }
    AddTo(values, Floats(*seen));
    fabric.Done(child, group.base);
  }
  Group down = group;
  down.base += 1;
  return Broadcast(down, std::as_writable_bytes(values), 0);
}

// The same tree downwards, by pieces, so that those below begin before those above have all.
Result<void> Broadcast(const Group& group, std::span<std::byte> bytes, std::size_t root) {
  const std::size_t n = group.size();
  if (n == 1 || bytes.empty()) return {};
  Fabric& fabric = *group.fabric;
  const std::size_t me = (group.me + n - root) % n;
  const auto rank = [&](std::size_t place) { return group.at((place + root) % n); };
  const std::size_t chunks = std::clamp<std::size_t>(bytes.size() / kChunkBytes, 1, kMostChunks);
  // The bits below the lowest one that is set; for the root all.
  std::size_t low = 1;
  while (low < n && (me & low) == 0) low *= 2;
  for (std::size_t c = 0; c < chunks; ++c) {
    const auto piece = Piece(bytes, c, chunks);
    if (me != 0) {
      if (auto got = fabric.Fetch(rank(me - low), group.base + c, piece); !got) return got;
    }
    for (std::size_t bit = low / 2; bit > 0; bit /= 2) {
      if (me + bit < n) fabric.Offer(rank(me + bit), group.base + c, piece);
    }
  }
  for (std::size_t c = 0; c < chunks; ++c) {
    for (std::size_t bit = low / 2; bit > 0; bit /= 2) {
      if (me + bit >= n) continue;
      if (auto taken = fabric.Taken(rank(me + bit), group.base + c); !taken) return taken;
    }
  }
  return {};
}

// In round k each hears from the one 2^k before, so after log2(n) rounds from all.
Result<void> Barrier(const Group& group) {
  const std::size_t n = group.size();
  Tag tag = group.base;
  for (std::size_t far = 1; far < n; far *= 2, ++tag) {
    group.fabric->Offer(group.at((group.me + far) % n), tag, {});
    if (auto got = group.fabric->Fetch(group.at((group.me + n - far) % n), tag, {}); !got) {
      return got;
    }
  }
  tag = group.base;
  for (std::size_t far = 1; far < n; far *= 2, ++tag) {
    if (auto taken = group.fabric->Taken(group.at((group.me + far) % n), tag); !taken) return taken;
  }
  return {};
}

}  // namespace muster::train
