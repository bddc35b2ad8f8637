#include "engine/worth_index.h"

#include <algorithm>
#include <bit>

namespace muster::engine {

using model::GpuKind;

namespace {

constexpr Mode kNow = Mode::kFree;

}  // namespace

void WorthIndex::Tree::Set(BankId bank, std::uint64_t key) {
  std::size_t i = leaves + bank;
  keys[i] = key;
  while (i > 1) {
    i /= 2;
    const auto least = std::min(keys[2 * i], keys[2 * i + 1]);
    if (keys[i] == least) return;
    keys[i] = least;
  }
}

BankId WorthIndex::Tree::First() const {
  if (keys[1] == kNoRoom) return kNone;
  std::size_t i = 1;
  while (i < leaves) i = keys[2 * i] == keys[i] ? 2 * i : 2 * i + 1;
  return static_cast<BankId>(i - leaves);
}

// From the most telling: place in the order of types (8 bits), what worth loses (16), how much is
// left (32; of cores for who asks for no GPU, and nodes without GPUs first), links (8).
std::uint64_t WorthIndex::KeyOf(const Shape& shape, BankId id) {
  const Bank& bank = nodes_.bank(id);
  const auto open = bank.unoccupied[static_cast<std::size_t>(kNow)];
  const auto bounded = [](std::int64_t value, int bits) {
    return static_cast<std::uint64_t>(
        std::clamp<std::int64_t>(value, 0, (std::int64_t{1} << bits) - 1));
  };
  std::uint64_t rank = 0, links = 0;
  std::int64_t left = 0;
  if (shape.spec.request.gpu.kind == GpuKind::kNone) {
    left = nodes_.HostFree(bank.node, kHostCpu, kNow);
    if (bank.type != kNone) left += std::int64_t{1} << 31;
  } else {
    rank = bounded(shape.type_rank[bank.type], 8);
    left = std::popcount(open) * kMilli;
    if (shape.spec.request.gpu.kind != GpuKind::kWhole) {
      left += bank.room_milli[static_cast<std::size_t>(kNow)];
    } else if (const auto& layout = nodes_.layout(bank.node); !layout.flat && by_links_) {
      links = bounded(
          BreakageOf(
              layout, open,
              ChooseDevices(layout, open,
                            static_cast<std::uint32_t>(shape.spec.request.gpu.devices), rules_)),
          8);
    }
  }
  return rank << 56 | bounded(worth_.Fall(shape, id, kNow), 16) << 40 | bounded(left, 32) << 8 |
         links;
}

void WorthIndex::Rebuild(ShapeId id, Tree& tree) {
  tree.banks = nodes_.bank_count();
  tree.leaves = std::bit_ceil(std::max<std::size_t>(1, tree.banks));
  tree.keys.assign(2 * tree.leaves, kNoRoom);
  const auto& slots = shapes_.SlotsByBank(id, kNow);
  for (BankId b = 0; b < tree.banks; ++b) {
    if (slots[b] > 0) tree.keys[tree.leaves + b] = KeyOf(shapes_[id], b);
  }
  for (std::size_t i = tree.leaves; i-- > 1;) {
    tree.keys[i] = std::min(tree.keys[2 * i], tree.keys[2 * i + 1]);
  }
  tree.learnt = generation_;
  tree.seen = nodes_.log(kNow).end();
}

WorthIndex::Tree& WorthIndex::CatchUp(ShapeId id) {
  if (worth_.Learn()) ++generation_;
  Tree& tree = trees_[id];
  tree.asked = ++queries_;
  const BankLog& log = nodes_.log(kNow);
  if (tree.banks != nodes_.bank_count() || tree.learnt != generation_ || tree.seen < log.start()) {
    Rebuild(id, tree);
    Forget(tree);
    return tree;
  }
  const auto& slots = shapes_.SlotsByBank(id, kNow);
  for (; tree.seen < log.end(); ++tree.seen) {
    if (log.superseded(tree.seen)) continue;
    const BankId bank = log.at(tree.seen);
    tree.Set(bank, slots[bank] > 0 ? KeyOf(shapes_[id], bank) : kNoRoom);
  }
  return tree;
}

// Who was not asked about for longest goes first.
void WorthIndex::Forget(const Tree& newest) {
  const auto most = std::clamp<std::size_t>(kMostLeaves / newest.leaves, 1, kMostKept);
  while (trees_.size() > most) {
    trees_.erase(std::min_element(trees_.begin(), trees_.end(), [](const auto& a, const auto& b) {
      return a.second.asked < b.second.asked;
    }));
  }
}

BankId WorthIndex::Pick(ShapeId shape, const std::function<bool(BankId)>& fits) {
  Tree& tree = CatchUp(shape);
  std::vector<std::pair<BankId, std::uint64_t>> passed;
  BankId found = tree.First();
  while (found != kNone && !fits(found)) {
    passed.emplace_back(found, tree.keys[tree.leaves + found]);
    tree.Set(found, kNoRoom);
    found = passed.size() < kLooks ? tree.First() : kNone;
  }
  for (const auto& [bank, key] : passed) tree.Set(bank, key);
  return found;
}

}  // namespace muster::engine
