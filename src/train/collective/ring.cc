#include <algorithm>

#include "train/collective/algorithms.h"
#include "train/collective/sum.h"

namespace muster::train {
namespace {

constexpr std::size_t kChunkFloats = (1 << 20) / 4;  // smaller ones cost more calls than they hide

}  // namespace

// In step s each sends part (me - s) to the next and gets part (me - s - 1) from the one before; in
// the first n-1 steps what comes is added, in the others it is the sum. A chunk goes on as soon as
// it is there. The sum of a chunk contains what this member sent of it, so it cannot come before
// that was read: it may be received straight into its place.
Result<void> AllReduceRing(const Group& group, std::span<float> values) {
  const std::size_t n = group.size();
  if (n == 1 || values.empty()) return {};
  Fabric& fabric = *group.fabric;
  const int next = group.at((group.me + 1) % n), before = group.at((group.me + n - 1) % n);
  std::size_t chunks = (values.size() / n + kChunkFloats - 1) / kChunkFloats;
  chunks = std::max<std::size_t>(chunks, 1);
  const auto chunk_of = [&](std::size_t part, std::size_t c) {
    const auto all = Cut(values, PartOf({0, values.size()}, part % n, n));
    return Cut(all, PartOf({0, all.size()}, c, chunks));
  };
  const auto tag = [&](std::size_t step, std::size_t c) { return group.base + step * chunks + c; };
  const std::size_t steps = 2 * (n - 1);
  for (std::size_t step = n - 1; step < steps; ++step) {
    for (std::size_t c = 0; c < chunks; ++c) {
      fabric.Expect(before, tag(step, c),
                    std::as_writable_bytes(chunk_of(group.me + 2 * n - step - 1, c)));
    }
  }
  for (std::size_t c = 0; c < chunks; ++c) {
    fabric.Offer(next, tag(0, c), std::as_bytes(chunk_of(group.me, c)));
  }
  for (std::size_t step = 0; step < steps; ++step) {
    for (std::size_t c = 0; c < chunks; ++c) {
      const auto chunk = chunk_of(group.me + 2 * n - step - 1, c);
      if (step < n - 1) {
        const auto seen = fabric.Look(before, tag(step, c));
        if (!seen) return tl::unexpected(seen.error());
        if (seen->size() != chunk.size_bytes()) {
          return Fail(ErrorCode::kInternal, "members reduce values of different lengths");
        }
        AddTo(chunk, Floats(*seen));
        fabric.Done(before, tag(step, c));
      } else {
        auto done = fabric.Fetch(before, tag(step, c), std::as_writable_bytes(chunk));
        if (!done) return done;
      }
      if (step + 1 < steps) fabric.Offer(next, tag(step + 1, c), std::as_bytes(chunk));
    }
  }
  for (std::size_t step = 0; step < steps; ++step) {
    for (std::size_t c = 0; c < chunks; ++c) {
      if (auto taken = fabric.Taken(next, tag(step, c)); !taken) return taken;
    }
  }
  return {};
}

}  // namespace muster::train
